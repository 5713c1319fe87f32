import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.DigestInputStream;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
  static final byte[] KEY = keyOf(System.getenv("WEBHOOK_SECRET"));
  static final Path FOLDER = Path.of(System.getenv("FOLDER"));
  static final Set<String> SEEN = ConcurrentHashMap.newKeySet(); // in a database
  static final Set<String> REQUIRED = Set.of("@method", "content-digest", "webhook-id");
  // relay=("@method" "content-digest");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
  static final Pattern INPUT = Pattern.compile("([a-z_]+)=(\\(([^)]*)\\);created=(\\d+);keyid=\"([0-9a-f]+)\";alg=\"hmac-sha256\")");

  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(Integer.parseInt(System.getenv("PORT"))), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", Receiver::handle);
    server.start();
    System.out.println("ready");
  }

  static void handle(HttpExchange exchange) throws IOException {
    int status = 500;
    try {
      status = isSigned(exchange) ? store(exchange) : 401;
    } catch (Exception thrown) {
      thrown.printStackTrace();
    }
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }

  /** Stores the body, unless it was seen before. Nothing remains of a body that does not have its digest. */
  static int store(HttpExchange exchange) throws IOException, GeneralSecurityException {
    String id = exchange.getRequestHeaders().getFirst("webhook-id");
    MessageDigest digest = sha256();
    Path part = Files.createTempFile(FOLDER, "receiving", ".part");
    try (OutputStream file = Files.newOutputStream(part)) {
      new DigestInputStream(exchange.getRequestBody(), digest).transferTo(file);
    }
    String computed = "sha-256=:" + Base64.getEncoder().encodeToString(digest.digest()) + ":";
    boolean isIntact = computed.equals(exchange.getRequestHeaders().getFirst("content-digest"));
    if (isIntact && !SEEN.contains(id)) {
      String name = HexFormat.of().formatHex(sha256().digest(id.getBytes(StandardCharsets.UTF_8)));
      Files.move(part, FOLDER.resolve(name), StandardCopyOption.REPLACE_EXISTING);
      SEEN.add(id);
    }
    Files.deleteIfExists(part);
    return isIntact ? 204 : 400;
  }

  static boolean isSigned(HttpExchange exchange) throws GeneralSecurityException {
    String inputs = exchange.getRequestHeaders().getFirst("signature-input");
    String signatures = exchange.getRequestHeaders().getFirst("signature");
    if (inputs == null || signatures == null) return false;
    String keyId = HexFormat.of().formatHex(sha256().digest(KEY)).substring(0, 16);
    for (Matcher input = INPUT.matcher(inputs); input.find();) {
      long age = Math.abs(Instant.now().getEpochSecond() - Long.parseLong(input.group(4)));
      if (!input.group(5).equals(keyId) || age > 300) continue;
      List<String> names = List.of(input.group(3).replace("\"", "").split(" "));
      Matcher signature = Pattern.compile("\\b" + input.group(1) + "=:([A-Za-z0-9+/=]+):").matcher(signatures);
      if (!names.containsAll(REQUIRED) || !signature.find()) continue;
      byte[] computed = hmac(baseOf(exchange, names, input.group(2)));
      if (MessageDigest.isEqual(computed, Base64.getDecoder().decode(signature.group(1)))) return true;
    }
    return false;
  }

  /** Returns the text that is signed: a line for each component. */
  static String baseOf(HttpExchange exchange, List<String> names, String parameters) {
    List<String> lines = new ArrayList<>();
    for (String name : names) {
      String value = name.equals("@method") ? exchange.getRequestMethod() : exchange.getRequestHeaders().getFirst(name);
      lines.add("\"" + name + "\": " + (value == null ? "" : value.trim()));
    }
    lines.add("\"@signature-params\": " + parameters);
    return String.join("\n", lines);
  }

  static byte[] hmac(String text) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(KEY, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  static MessageDigest sha256() throws GeneralSecurityException {
    return MessageDigest.getInstance("SHA-256");
  }

  static byte[] keyOf(String secret) {
    return secret.startsWith("whsec_") ? Base64.getDecoder().decode(secret.substring(6)) : secret.getBytes(StandardCharsets.UTF_8);
  }
}
