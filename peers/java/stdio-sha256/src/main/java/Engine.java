import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.function.Function;

/**
 * A reference engine: it performs an operation in its own process, times it there, and speaks one line of JSON each way. Put
 * your own operations into the table: a case's name without its size, and what makes a result from the input.
 */
public final class Engine {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

    private static final Map<String, Function<JsonObject, String>> OPERATIONS =
            Map.of("digest", input -> sha256(input.get("note").getAsString()));

    private static String sha256(String text) {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(sum);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static JsonObject perform(JsonObject call) {
        JsonObject out = new JsonObject();
        out.add("id", call.get("id"));
        String name = call.get("case").getAsString();
        Function<JsonObject, String> operation = OPERATIONS.get(name.split("/", 2)[0]);
        if (operation == null) {
            out.addProperty("error", "no case " + name);
            return out;
        }
        JsonObject input = call.getAsJsonObject("input");
        long begin = System.nanoTime();
        String result = operation.apply(input);
        out.addProperty("ns", System.nanoTime() - begin);
        out.addProperty("digest", sha256(result));
        return out;
    }

    private static JsonObject answer(String line) {
        JsonObject out = new JsonObject();
        if (line.equals("stats")) {
            Runtime r = Runtime.getRuntime();
            out.addProperty("heap", r.totalMemory() - r.freeMemory());
            return out;
        }
        JsonObject call = null;
        try {
            call = GSON.fromJson(line, JsonObject.class);
            return perform(call);
        } catch (JsonParseException | IllegalStateException | NullPointerException | UnsupportedOperationException e) {
            out.add("id", call == null ? null : call.get("id"));
            out.addProperty("error", String.valueOf(e));
            return out;
        }
    }

    public static void main(String[] args) throws IOException {
        PrintStream say = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        JsonObject ready = new JsonObject();
        ready.addProperty("ready", "stdio:");
        ready.addProperty("version", System.getProperty("java.version"));
        ready.addProperty("name", "java-sha256");
        ready.addProperty("language", "java");
        ready.addProperty("sdk", "java.security");
        say.println(GSON.toJson(ready));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            say.println(GSON.toJson(answer(line.strip())));
        }
    }
}
