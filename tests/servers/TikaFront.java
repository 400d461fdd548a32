import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.StringJoiner;
import java.util.concurrent.Executors;
import org.apache.tika.Tika;
import org.apache.tika.exception.TikaException;
import org.apache.tika.exception.WriteLimitReachedException;
import org.apache.tika.io.TikaInputStream;
import org.apache.tika.metadata.HttpHeaders;
import org.apache.tika.metadata.Metadata;
import org.apache.tika.metadata.TikaCoreProperties;
import org.apache.tika.parser.AutoDetectParser;
import org.apache.tika.parser.ParseContext;
import org.apache.tika.parser.RecursiveParserWrapper;
import org.apache.tika.parser.ocr.TesseractOCRConfig;
import org.apache.tika.parser.pdf.PDFParserConfig;
import org.apache.tika.sax.BasicContentHandlerFactory;
import org.apache.tika.sax.RecursiveParserWrapperHandler;
import org.xml.sax.ContentHandler;

/**
 * The real Tika parsers behind the interface of tika-server, whose own jar no package manager serves:
 * GET /version, PUT /tika/{xml|text}, PUT /rmeta/{xml|text|ignore}, with its statuses and its JSON. As
 * there, a file that cannot be parsed is a bare 422 to /tika, and its stack trace in the answer of /rmeta.
 */
public class TikaFront {
  public static void main(String[] arguments) throws IOException {
    HttpServer server =
        HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 64);
    server.createContext(
        "/version", exchange -> send(exchange, 200, "text/plain", new Tika().toString()));
    server.createContext("/tika", exchange -> answered(exchange, TikaFront::tika));
    server.createContext("/rmeta", exchange -> answered(exchange, TikaFront::rmeta));
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }

  interface Answer {
    String to(HttpExchange exchange, InputStream body) throws Exception;
  }

  static void answered(HttpExchange exchange, Answer answer) throws IOException {
    String json;
    try (InputStream body = TikaInputStream.get(exchange.getRequestBody())) {
      json = answer.to(exchange, body);
    } catch (TikaException | IllegalStateException error) {
      send(exchange, 422, "text/plain", "");
      return;
    } catch (Throwable error) {
      send(exchange, 500, "text/plain", "");
      return;
    }
    send(exchange, 200, "application/json", json);
  }

  static String tika(HttpExchange exchange, InputStream body) throws Exception {
    Metadata metadata = described(exchange);
    ParseContext context = configured(exchange);
    ContentHandler handler = factory(exchange, context).getNewContentHandler();
    try {
      new AutoDetectParser().parse(body, handler, metadata, context);
    } catch (Exception error) {
      if (!WriteLimitReachedException.isWriteLimitReached(error)) {
        throw error;
      }
      metadata.set(TikaCoreProperties.WRITE_LIMIT_REACHED, "true");
    } finally {
      metadata.add(TikaCoreProperties.TIKA_CONTENT, handler.toString());
    }
    return json(metadata);
  }

  static String rmeta(HttpExchange exchange, InputStream body) throws Exception {
    Metadata metadata = described(exchange);
    ParseContext context = configured(exchange);
    RecursiveParserWrapperHandler handler =
        new RecursiveParserWrapperHandler(factory(exchange, context), -1);
    try {
      new RecursiveParserWrapper(new AutoDetectParser()).parse(body, handler, metadata, context);
    } catch (Exception error) {
      // its stack trace is in the metadata
    }
    StringJoiner all = new StringJoiner(",", "[", "]");
    List<Metadata> found = handler.getMetadataList();
    found.forEach(each -> all.add(json(each)));
    return all.toString();
  }

  static Metadata described(HttpExchange exchange) {
    Metadata metadata = new Metadata();
    String type = exchange.getRequestHeaders().getFirst("Content-Type");
    if (type != null && !type.equals("application/octet-stream") && !type.endsWith("xml")) {
      metadata.add(HttpHeaders.CONTENT_TYPE, type);
    }
    String disposition = exchange.getRequestHeaders().getFirst("Content-Disposition");
    if (disposition != null && disposition.contains("filename=\"")) {
      String name = disposition.split("filename=\"")[1].split("\"")[0];
      metadata.set(TikaCoreProperties.RESOURCE_NAME_KEY, name);
    }
    return metadata;
  }

  static ParseContext configured(HttpExchange exchange) {
    ParseContext context = new ParseContext();
    TesseractOCRConfig ocr = new TesseractOCRConfig();
    ocr.setSkipOcr("true".equals(exchange.getRequestHeaders().getFirst("X-Tika-OCRskipOcr")));
    context.set(TesseractOCRConfig.class, ocr);
    String strategy = exchange.getRequestHeaders().getFirst("X-Tika-PDFOcrStrategy");
    if (strategy != null) {
      PDFParserConfig pdf = new PDFParserConfig();
      pdf.setOcrStrategy(strategy);
      context.set(PDFParserConfig.class, pdf);
    }
    return context;
  }

  static BasicContentHandlerFactory factory(HttpExchange exchange, ParseContext context) {
    String[] path = exchange.getRequestURI().getPath().split("/");
    String limit = exchange.getRequestHeaders().getFirst("writeLimit");
    BasicContentHandlerFactory.HANDLER_TYPE type =
        BasicContentHandlerFactory.parseHandlerType(
            path.length > 2 ? path[2] : "", BasicContentHandlerFactory.HANDLER_TYPE.TEXT);
    return new BasicContentHandlerFactory(
        type, limit == null ? -1 : Integer.parseInt(limit), true, context);
  }

  static String json(Metadata metadata) {
    StringJoiner fields = new StringJoiner(",", "{", "}");
    for (String name : metadata.names()) {
      StringJoiner values = new StringJoiner(",");
      for (String value : metadata.getValues(name)) {
        values.add(quoted(value));
      }
      boolean many = metadata.getValues(name).length > 1;
      fields.add(quoted(name) + ":" + (many ? "[" + values + "]" : values));
    }
    return fields.toString();
  }

  static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char each : text.toCharArray()) {
      if (each == '"' || each == '\\') {
        quoted.append('\\').append(each);
      } else if (each < ' ' || Character.isSurrogate(each)) {
        quoted.append(String.format("\\u%04x", (int) each));
      } else {
        quoted.append(each);
      }
    }
    return quoted.append('"').toString();
  }

  static void send(HttpExchange exchange, int status, String type, String body)
      throws IOException {
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
    if (bytes.length > 0) {
      exchange.getResponseBody().write(bytes);
    }
    exchange.close();
  }
}
