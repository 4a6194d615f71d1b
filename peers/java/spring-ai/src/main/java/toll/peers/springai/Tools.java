package toll.peers.springai;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springaicommunity.mcp.annotation.McpTool;
import org.springaicommunity.mcp.annotation.McpToolParam;
import org.springframework.stereotype.Component;

/** The four tools. */
@Component
public class Tools {

	private static final String SERVER = "spring-ai";

	private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();

	@McpTool(name = "calculate_fibonacci", description = "Calculates a Fibonacci number by naive recursion.")
	public Map<String, Object> calculateFibonacci(@McpToolParam(description = "from 0 to 40") int n) {
		if (n < 0 || n > 40) {
			throw new IllegalArgumentException("n: want 0 to 40");
		}
		return result("input", n, "result", fib(n));
	}

	private static long fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	@McpTool(name = "fetch_external_data", description = "Gets a URL and says how that went.")
	public Map<String, Object> fetchExternalData(@McpToolParam(description = "http://…") String endpoint) throws InterruptedException {
		long begin = System.nanoTime();
		int status = 0;
		String error = null;
		try {
			HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint)).timeout(Duration.ofSeconds(10)).build();
			status = http.send(request, HttpResponse.BodyHandlers.ofString()).statusCode();
		} catch (IOException e) {
			error = e.toString();
		}
		Map<String, Object> out = result("url", endpoint, "status_code", status);
		out.put("response_time_ms", (System.nanoTime() - begin) / 1e6);
		if (error != null) {
			out.put("error", error);
		}
		return out;
	}

	@McpTool(name = "process_json_data", description = "Turns every text within an object into upper case.")
	public Map<String, Object> processJsonData(@McpToolParam(description = "an object") Map<String, Object> data) {
		return result("original_keys", List.copyOf(data.keySet()), "transformed_data", upper(data));
	}

	private static Object upper(Object v) {
		if (v instanceof String s) {
			return s.toUpperCase();
		}
		if (v instanceof List<?> list) {
			return list.stream().map(Tools::upper).toList();
		}
		if (v instanceof Map<?, ?> map) {
			Map<Object, Object> out = new LinkedHashMap<>();
			map.forEach((k, e) -> out.put(k, upper(e)));
			return out;
		}
		return v;
	}

	@McpTool(name = "simulate_database_query", description = "Waits as long as a query would take.")
	public Map<String, Object> simulateDatabaseQuery(@McpToolParam(description = "the query") String query,
			@McpToolParam(description = "from 0 to 5000", required = false) Integer delay_ms) throws InterruptedException {
		int delay = delay_ms == null ? 0 : delay_ms;
		if (delay < 0 || delay > 5000) {
			throw new IllegalArgumentException("delay_ms: want 0 to 5000");
		}
		Thread.sleep(delay);
		Map<String, Object> out = result("query", query, "delay_ms", delay);
		out.put("timestamp", Instant.now().toString());
		return out;
	}

	private static Map<String, Object> result(Object... pairs) {
		Map<String, Object> out = new LinkedHashMap<>();
		for (int i = 0; i < pairs.length; i += 2) {
			out.put((String) pairs[i], pairs[i + 1]);
		}
		out.put("server_type", SERVER);
		return out;
	}
}
