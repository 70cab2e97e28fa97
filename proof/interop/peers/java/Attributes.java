import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/** Converts attributes to and from DynamoDB JSON (API reference, "AttributeValue"). */
final class Attributes {
    private Attributes() { }

    static Map<String, AttributeValue> read(final JsonObject shaped) {
        final Map<String, AttributeValue> values = new TreeMap<>();
        shaped.entrySet().forEach(e -> values.put(e.getKey(), readValue(e.getValue().getAsJsonObject())));
        return values;
    }

    static JsonObject write(final Map<String, AttributeValue> values) {
        final JsonObject shaped = new JsonObject();
        values.forEach((name, v) -> shaped.add(name, writeValue(v)));
        return shaped;
    }

    private static AttributeValue readValue(final JsonObject shape) {
        final Map.Entry<String, JsonElement> e = shape.entrySet().iterator().next();
        final JsonElement v = e.getValue();
        final AttributeValue.Builder b = AttributeValue.builder();
        switch (e.getKey()) {
            case "S": return b.s(v.getAsString()).build();
            case "N": return b.n(v.getAsString()).build();
            case "B": return b.b(bytes(v)).build();
            case "BOOL": return b.bool(v.getAsBoolean()).build();
            case "NULL": return b.nul(v.getAsBoolean()).build();
            case "SS": return b.ss(each(v, JsonElement::getAsString)).build();
            case "NS": return b.ns(each(v, JsonElement::getAsString)).build();
            case "BS": return b.bs(each(v, Attributes::bytes)).build();
            case "L": return b.l(each(v, x -> readValue(x.getAsJsonObject()))).build();
            case "M": return b.m(read(v.getAsJsonObject())).build();
            default: throw new IllegalArgumentException("no attribute type " + e.getKey());
        }
    }

    private static JsonObject writeValue(final AttributeValue v) {
        final JsonObject shape = new JsonObject();
        switch (v.type()) {
            case S: shape.addProperty("S", v.s()); break;
            case N: shape.addProperty("N", v.n()); break;
            case B: shape.addProperty("B", text(v.b())); break;
            case BOOL: shape.addProperty("BOOL", v.bool()); break;
            case NUL: shape.addProperty("NULL", v.nul()); break;
            case SS: shape.add("SS", array(v.ss(), JsonArray::add)); break;
            case NS: shape.add("NS", array(v.ns(), JsonArray::add)); break;
            case BS: shape.add("BS", array(v.bs(), (a, b) -> a.add(text(b)))); break;
            case L: shape.add("L", array(v.l(), (a, x) -> a.add(writeValue(x)))); break;
            case M: shape.add("M", write(v.m())); break;
            default: throw new IllegalArgumentException("no attribute type " + v.type());
        }
        return shape;
    }

    private static <T> List<T> each(final JsonElement array, final Function<JsonElement, T> f) {
        return StreamSupport.stream(array.getAsJsonArray().spliterator(), false).map(f).collect(Collectors.toList());
    }

    private static <T> JsonArray array(final List<T> values, final BiConsumer<JsonArray, T> add) {
        final JsonArray a = new JsonArray();
        values.forEach(v -> add.accept(a, v));
        return a;
    }

    private static SdkBytes bytes(final JsonElement v) {
        return SdkBytes.fromByteArray(Base64.getDecoder().decode(v.getAsString()));
    }

    private static String text(final SdkBytes b) {
        return Base64.getEncoder().encodeToString(b.asByteArray());
    }
}
