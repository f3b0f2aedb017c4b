# user only: it takes long, and nothing in it asks who runs it
# needs: java
# T2 fails: Datagram and netlink sockets are refused (Java's `NetworkInterface`, Node's `os.networkInterfaces`)
cat > N.java <<'J'
public class N { public static void main(String[] a) throws Exception { System.out.println(java.net.NetworkInterface.getByName("lo").isUp()); java.net.NetworkInterface.getNetworkInterfaces(); } }
J
java N.java
