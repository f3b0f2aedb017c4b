# The ways in which editors and filters save a file.
# needs: sed perl
seq 5 > f
sed -i 's/3/three/' f
perl -i.bak -pe 's/4/four/' f
sort -o f f
cat f > g && mv g f
cp -p f g && cp --remove-destination g f
printf 'six\n' | tee -a f > /dev/null
dd if=/dev/zero of=f bs=1 count=0 seek=40 status=none
mv -b f.bak f && ls && cat f f~ | tr -d '\0'
mkdir -p d && mv f d/f && mv d e && mv -n f~ e && ls -R
for i in 1 2 3 4 5 6 7 8 9; do echo "$i" > .new && mv .new one || exit; done; cat one
install -m 600 one two && stat -c %a two && ln -f one two && stat -c %h one && ln -sfn one link && ln -sfn two link && readlink link
patch -s one <<'P' && cat one
--- one
+++ one
@@ -1 +1 @@
-9
+nine
P
