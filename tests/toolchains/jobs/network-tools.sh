# needs: ip ss
# T2 fails: Datagram and netlink sockets are refused
ip -o link show lo | cut -d: -f2
ss -Htln > /dev/null && echo sockets
