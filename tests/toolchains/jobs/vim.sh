# needs: vim
printf 'one\ntwo\n' > f && chmod 640 f
for how in auto yes no; do vim -u NONE -N -es -c "set backupcopy=$how backup writebackup" -c "%s/\$/ $how/" -c wq f; done
cat f && stat -c %a f && ls -A
vim -u NONE -N -es -c 'set undofile undodir=. swapfile' -c 'normal Gothree' -c wq f && tail -1 f && ls -A | grep -c un~
