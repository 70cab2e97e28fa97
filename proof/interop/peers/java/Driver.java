import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Runs the awslabs lock client behind the line protocol of interop/README.md. Each request is
 * answered on a new thread, so that other requests are answered while one request waits for a lock.
 */
public final class Driver {
    private static final PrintStream ANSWERS =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    private Driver() { }

    public static void main(final String[] args) throws IOException {
        System.setOut(System.err); // so that output of the library cannot mix with the answers
        final Map<Long, Peer> peers = new HashMap<>(); // by the id of the open request; 0 for the first peer
        final ExecutorService threads = Executors.newCachedThreadPool();
        final BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            final JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            final Peer peer = peerFor(request, peers);
            threads.execute(() -> answer(peer, request));
        }
        Runtime.getRuntime().halt(0); // ends without releasing the held locks, like a process that dies
    }

    private static Peer peerFor(final JsonObject request, final Map<Long, Peer> peers) {
        if (!request.get("do").getAsString().equals("open")) {
            return peers.get(request.has("client") ? request.get("client").getAsLong() : 0L);
        }
        final Peer opened = new Peer();
        peers.put(request.get("id").getAsLong(), opened);
        peers.putIfAbsent(0L, opened);
        return opened;
    }

    private static void answer(final Peer peer, final JsonObject request) {
        JsonObject reply = new JsonObject();
        try {
            reply = peer.answer(request);
        } catch (final Refusal e) {
            reply.add("error", error(e.kind, e.getMessage()));
        } catch (final Throwable e) { // an exception of the library, returned unchanged
            reply.add("error", error("failed", e.toString()));
        }
        reply.add("id", request.get("id"));
        synchronized (ANSWERS) {
            ANSWERS.println(reply);
        }
    }

    private static JsonObject error(final String kind, final String message) {
        final JsonObject error = new JsonObject();
        error.addProperty("kind", kind);
        error.addProperty("message", message);
        return error;
    }
}
