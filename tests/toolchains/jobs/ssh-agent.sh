# Nobody may look into it, as it wants it.
# needs: ssh-agent ssh-add ssh-keygen
# T2 fails for user: `ssh-agent` binds no socket
ssh-keygen -q -t ed25519 -N '' -C me -f key
eval "$(ssh-agent -a "$PWD/agent" -s)" > /dev/null
ssh-add -q key && ssh-add -l | grep -o ED25519 && ssh-agent -k > /dev/null
