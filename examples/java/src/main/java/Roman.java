// A tool in Java: an HTTP server that answers a CloudEvent with a CloudEvent.
import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Executors;

public final class Roman {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LARGEST_CALL = 1_000_000; // bytes
    private static final int[] VALUES = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    private static final String[] SIGNS = {"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"};

    private record Arguments(int number) {}

    private static String write(int number) {
        StringBuilder roman = new StringBuilder();
        for (int place = 0; place < VALUES.length; place++) {
            roman.append(SIGNS[place].repeat(number / VALUES[place]));
            number %= VALUES[place];
        }
        return roman.toString();
    }

    /** Returns the data of the reply. An error with a reason goes to the model, which may correct its call. */
    private static Map<String, Object> answer(byte[] data) throws IOException {
        try {
            Arguments given = JSON.readValue(data, Arguments.class);
            if (given != null && given.number() >= 1 && given.number() <= 3999) {
                return Map.of("roman", write(given.number()));
            }
        } catch (JacksonException invalid) {
            // The answer is the same as for a number that is too large.
        }
        return Map.of("error", Map.of("reason", "invalid_arguments", "message", "number: send 1 to 3999"));
    }

    private static void receive(HttpExchange exchange) throws IOException {
        try (exchange) {
            String correlation = exchange.getRequestHeaders().getFirst("ce-correlationid");
            byte[] data = exchange.getRequestBody().readNBytes(LARGEST_CALL);
            byte[] reply = JSON.writeValueAsBytes(answer(data));
            var headers = exchange.getResponseHeaders();
            headers.set("Content-Type", "application/json");
            headers.set("ce-specversion", "1.0");
            headers.set("ce-id", UUID.randomUUID().toString());
            headers.set("ce-source", "/examples/java");
            headers.set("ce-type", "example.roman.java.done");
            if (correlation != null) headers.set("ce-replyid", correlation);
            exchange.sendResponseHeaders(200, reply.length);
            exchange.getResponseBody().write(reply);
        }
    }

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
        server.createContext("/", Roman::receive);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
