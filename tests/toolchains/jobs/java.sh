# user only: it takes long, and nothing in it asks who runs it
# needs: java javac jar
mkdir -p src/app
cat > src/app/Main.java <<'J'
package app;
import java.net.http.*; import java.net.*; import java.nio.file.*; import java.util.concurrent.*;
public class Main {
  public static void main(String[] args) throws Exception {
    var pool = Executors.newFixedThreadPool(3);
    System.out.println(pool.submit(() -> 6 * 7).get()); pool.shutdown();
    var server = com.sun.net.httpserver.HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", x -> { x.sendResponseHeaders(200, 2); x.getResponseBody().write("ok".getBytes()); x.close(); }); server.start();
    var uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
    System.out.println(HttpClient.newBuilder().proxy(ProxySelector.of(null)).build().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body()); server.stop(0);
    Files.writeString(Path.of("x"), "x"); Files.move(Path.of("x"), Path.of("y"), StandardCopyOption.ATOMIC_MOVE);
    try (var channel = java.nio.channels.FileChannel.open(Path.of("y"), StandardOpenOption.WRITE); var lock = channel.lock()) { System.out.println(lock.isValid()); }
    System.out.println(new String(new ProcessBuilder("echo", "child").start().getInputStream().readAllBytes()).trim());
  }
}
J
javac -d out src/app/Main.java && jar --create --file app.jar --main-class app.Main -C out . && java -jar app.jar
