# needs: sqlite3
sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values (1);'
for i in 1 2 3 4; do sqlite3 -cmd '.timeout 20000' db "insert into t select x + 1 from t limit 1; insert into t values ($i);" & done; wait
sqlite3 db 'select count(*), sum(x) from t; pragma wal_checkpoint(truncate); vacuum; pragma integrity_check;'
sqlite3 db '.backup copy' && sqlite3 copy 'select count(*) from t'
(sqlite3 db 'begin exclusive; select 1;' '.system sleep 0.5' 'commit;' & sleep 0.2; sqlite3 other 'pragma journal_mode=delete; create table t(x);'; wait) && ls
