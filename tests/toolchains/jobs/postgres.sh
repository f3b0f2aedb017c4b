# A database of the project's own, on a unix socket and a port.
# needs: psql /usr/lib/postgresql/*/bin/initdb
# user only: initdb refuses to be run by root
# T2 fails: System V and POSIX queues and memory** are refused
bin=$(echo /usr/lib/postgresql/*/bin)
"$bin/initdb" -D data -U me -A trust --no-sync > log && "$bin/pg_ctl" -D data -w -s -l log -o "-k $PWD -h 127.0.0.1 -p 54399" start
psql -h "$PWD" -p 54399 -U me -d postgres -Atc 'create table t as select generate_series(1, 10) x; select sum(x) from t'
psql -h 127.0.0.1 -p 54399 -U me -d postgres -Atc 'set max_parallel_workers_per_gather = 2; set force_parallel_mode = on; select count(*) from t' | tail -1
"$bin/pg_ctl" -D data -w -s -m fast stop && echo stopped
