import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.GetLockOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.ReleaseLockOptions;
import com.amazonaws.services.dynamodbv2.SendHeartbeatOptions;
import com.amazonaws.services.dynamodbv2.model.LockCurrentlyUnavailableException;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/** Executes requests with the awslabs lock client. */
final class Peer {
    private final Map<Long, LockItem> locks = new ConcurrentHashMap<>();
    private AmazonDynamoDBLockClient client;
    private long poll;

    JsonObject answer(final JsonObject r) throws InterruptedException {
        final JsonObject reply = new JsonObject();
        switch (r.get("do").getAsString()) {
            case "open":
                open(r);
                break;
            case "acquire":
                reply.add("record", record(acquire(r)));
                break;
            case "heartbeat":
                heartbeat(r);
                break;
            case "release":
                release(r);
                break;
            case "get":
                only(r, "key", "sortValue");
                client.getLockFromDynamoDB(GetLockOptions.builder(text(r, "key")).withSortKey(text(r, "sortValue")).build())
                    .ifPresent(found -> reply.add("record", record(found)));
                break;
            case "list":
                reply.add("records", list(r));
                break;
            case "held":
                only(r);
                reply.addProperty("held", !lock(r).isExpired());
                break;
            default:
                throw new Refusal("unsupported", "this peer has no " + r.get("do").getAsString());
        }
        return reply;
    }

    private void open(final JsonObject r) {
        only(r, "table", "partitionKey", "sortKey", "owner", "leaseMs", "heartbeatMs", "pollMs");
        final DynamoDbClient dynamoDB = DynamoDbClient.builder().httpClientBuilder(ApacheHttpClient.builder()).build();
        final var options = AmazonDynamoDBLockClientOptions.builder(dynamoDB, text(r, "table"))
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(r.get("leaseMs").getAsLong())
            .withCreateHeartbeatBackgroundThread(r.has("heartbeatMs"));
        if (r.has("heartbeatMs")) {
            options.withHeartbeatPeriod(r.get("heartbeatMs").getAsLong());
        }
        if (r.has("partitionKey")) {
            options.withPartitionKeyName(text(r, "partitionKey"));
        }
        if (r.has("sortKey")) {
            options.withSortKeyName(text(r, "sortKey"));
        }
        if (r.has("owner")) {
            options.withOwnerName(text(r, "owner"));
        }
        poll = r.has("pollMs") ? r.get("pollMs").getAsLong() : 1000;
        client = new AmazonDynamoDBLockClient(options.build());
    }

    private LockItem acquire(final JsonObject r) throws InterruptedException {
        only(r, "key", "sortValue", "waitMs", "data", "attributes", "keepData", "keepOnRelease", "update", "ifExists",
            "consistently", "reentrant");
        final long wait = r.has("waitMs") ? r.get("waitMs").getAsLong() : 0;
        final var options = AcquireLockOptions.builder(text(r, "key"))
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withRefreshPeriod(poll)
            .withAdditionalTimeToWaitForLock(wait)
            .withShouldSkipBlockingWait(wait == 0)
            .withReplaceData(!flag(r, "keepData"))
            .withDeleteLockOnRelease(!flag(r, "keepOnRelease"))
            .withUpdateExistingLockRecord(flag(r, "update"))
            .withAcquireOnlyIfLockAlreadyExists(flag(r, "ifExists"))
            .withAcquireReleasedLocksConsistently(flag(r, "consistently"))
            .withReentrant(flag(r, "reentrant"));
        if (r.has("sortValue")) {
            options.withSortKey(text(r, "sortValue"));
        }
        if (r.has("data")) {
            options.withData(data(r));
        }
        if (r.has("attributes")) {
            options.withAdditionalAttributes(Attributes.read(r.getAsJsonObject("attributes")));
        }
        try {
            final LockItem lock = client.acquireLock(options.build());
            locks.put(r.get("id").getAsLong(), lock);
            return lock;
        } catch (final LockNotGrantedException | LockCurrentlyUnavailableException e) {
            throw new Refusal("held", e.toString());
        }
    }

    private void heartbeat(final JsonObject r) {
        only(r, "data", "deleteData", "leaseMs");
        final var options = SendHeartbeatOptions.builder(lock(r)).withTimeUnit(TimeUnit.MILLISECONDS);
        if (r.has("data")) {
            options.withData(data(r));
        }
        if (flag(r, "deleteData")) {
            options.withDeleteData(true);
        }
        if (r.has("leaseMs")) {
            options.withLeaseDurationToEnsure(r.get("leaseMs").getAsLong());
        }
        try {
            client.sendHeartbeat(options.build());
        } catch (final LockNotGrantedException e) {
            throw new Refusal("lost", e.toString());
        }
    }

    private void release(final JsonObject r) {
        only(r, "data", "keep", "bestEffort");
        final LockItem lock = lock(r);
        final var options = ReleaseLockOptions.builder(lock)
            .withDeleteLock(r.has("keep") ? !flag(r, "keep") : lock.getDeleteLockItemOnClose())
            .withBestEffort(flag(r, "bestEffort"));
        if (r.has("data")) {
            options.withData(data(r));
        }
        if (!client.releaseLock(options.build())) {
            throw new Refusal("lost", "releaseLock returned false");
        }
    }

    private JsonArray list(final JsonObject r) {
        only(r, "key");
        final Stream<LockItem> found = r.has("key")
            ? client.getLocksByPartitionKey(text(r, "key"), false)
            : client.getAllLocksFromDynamoDB(false);
        final List<JsonObject> records = found.map(Peer::record).collect(Collectors.toList());
        final JsonArray array = new JsonArray();
        records.forEach(array::add);
        return array;
    }

    private LockItem lock(final JsonObject r) {
        return locks.get(r.get("lock").getAsLong());
    }

    /** Returns the record of a lock, as the library shows it. The library does not show whether the lock was released. */
    private static JsonObject record(final LockItem lock) {
        final JsonObject record = new JsonObject();
        record.addProperty("key", lock.getPartitionKey());
        lock.getSortKey().ifPresent(sort -> record.addProperty("sortValue", sort));
        record.addProperty("owner", lock.getOwnerName());
        record.addProperty("version", lock.getRecordVersionNumber());
        record.addProperty("leaseMs", lock.getLeaseDuration());
        final Optional<ByteBuffer> data = lock.getData();
        data.ifPresent(b -> {
            final byte[] bytes = new byte[b.remaining()];
            b.duplicate().get(bytes);
            record.addProperty("data", Base64.getEncoder().encodeToString(bytes));
        });
        record.add("attributes", Attributes.write(lock.getAdditionalAttributes()));
        return record;
    }

    private static String text(final JsonObject r, final String name) {
        return r.has(name) ? r.get(name).getAsString() : null;
    }

    private static boolean flag(final JsonObject r, final String name) {
        return r.has(name) && r.get(name).getAsBoolean();
    }

    private static ByteBuffer data(final JsonObject r) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(text(r, "data")));
    }

    /** Throws a Refusal if the request contains an option that the library does not support. */
    private static void only(final JsonObject r, final String... known) {
        final Set<String> meant = new HashSet<>(Arrays.asList(known));
        meant.addAll(Set.of("id", "do", "lock", "client"));
        for (final String name : r.keySet()) {
            if (!meant.contains(name)) {
                throw new Refusal("unsupported", "this peer has no " + name + " for " + text(r, "do"));
            }
        }
    }
}
