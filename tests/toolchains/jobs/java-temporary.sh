# user only: it takes long, and nothing in it asks who runs it
# needs: java
# T2 fails: Java's temporary files
cat > T.java <<'J'
public class T { public static void main(String[] a) throws Exception { System.out.println(java.nio.file.Files.createTempFile("t", null).toFile().delete()); } }
J
java T.java
