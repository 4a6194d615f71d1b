package toll.peers.springai;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;

/** Serves the tools of the first TM Dev Lab benchmark of MCP servers over Spring AI, as its manual shows it. */
@SpringBootApplication
public class Server {

	private static String host;

	public static void main(String[] args) {
		if (args.length != 2 || !args[0].equals("tmdevlab-v1")) {
			System.err.println("usage: spring-ai tmdevlab-v1 HOST");
			System.exit(2);
		}
		host = args[1];
		SpringApplication.run(Server.class, "--server.address=" + host);
	}

	/** The contract's first line, and then its answers on stdin until that ends. */
	@EventListener
	public void ready(ApplicationReadyEvent event) {
		String port = event.getApplicationContext().getEnvironment().getProperty("local.server.port");
		System.out.printf("{\"ready\":\"http://%s:%s/mcp\",\"version\":\"2.0.0-M2 on Java %s\",\"language\":\"java\",\"sdk\":\"spring-ai\"}%n",
				host, port, Runtime.version().feature());
		Thread answers = new Thread(Server::answer, "stdin");
		answers.setDaemon(true);
		answers.start();
	}

	private static void answer() {
		try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
			for (String line; (line = in.readLine()) != null;) {
				if (line.equals("collect")) {
					System.gc();
				}
				if (line.equals("stats") || line.equals("collect")) {
					Runtime r = Runtime.getRuntime(); // the JVM counts no allocations of the whole process
					System.out.printf("{\"heap\":%d}%n", r.totalMemory() - r.freeMemory());
				}
			}
		} catch (IOException e) {
			System.err.println("stdin: " + e);
		}
		Runtime.getRuntime().halt(0);
	}
}
