// Prints, one JSON object a line, what the Java implementation of Iceberg answers.
// Run: javac -cp "$CP" JavaVectors.java && java -cp "$CP:." JavaVectors > java_vectors.jsonl
// where CP is iceberg-spark-runtime-4.1_2.13-1.12.0.jar and the jars folder of pyspark 4.1.
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SingleValueParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Term;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.SerializableFunction;

public class JavaVectors {
  static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 32 || c > 126) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  static String hex(ByteBuffer buffer) {
    StringBuilder out = new StringBuilder();
    ByteBuffer copy = buffer.duplicate();
    while (copy.hasRemaining()) {
      out.append(String.format("%02x", copy.get()));
    }
    return out.toString();
  }

  static final InMemoryCatalog CATALOG = new InMemoryCatalog();
  static final Type[] TYPES = {
    Types.BooleanType.get(), Types.IntegerType.get(), Types.LongType.get(), Types.FloatType.get(),
    Types.DoubleType.get(), Types.DateType.get(), Types.TimeType.get(),
    Types.TimestampType.withoutZone(), Types.TimestampType.withZone(),
    Types.TimestampNanoType.withoutZone(), Types.TimestampNanoType.withZone(),
    Types.StringType.get(), Types.UUIDType.get(), Types.FixedType.ofLength(3),
    Types.BinaryType.get(), Types.DecimalType.of(9, 2), Types.DecimalType.of(38, 10)
  };

  static Object[] values(Type type) {
    switch (type.typeId()) {
      case BOOLEAN:
        return new Object[] {true, false};
      case INTEGER:
      case DATE:
        return new Object[] {
          0, 1, -1, 34, 17486, -719528, -719529, 10957, 11016, Integer.MAX_VALUE / 1000,
          -1000000, Integer.MAX_VALUE, Integer.MIN_VALUE + 9
        };
      case LONG:
      case TIMESTAMP:
      case TIMESTAMP_NANO:
        return new Object[] {
          0L, 1L, -1L, 34L, 1510871468000000L, 1510871468000001L, 1510871468120000L,
          1510871468000001001L, -1510871468000001001L, -3600000000L, -3600000001L,
          1510871460000000L, -62135596800000000L, 4102444800000000L, 1512151975038194L
        };
      case TIME:
        return new Object[] {
          0L, 1L, 81068000000L, 81068123000L, 81068123456L, 81060000000L, 86399999999L
        };
      case FLOAT:
        return new Object[] {0f, -0f, 1f, -1.5f, 0.1f, 1e7f, 1.5e-5f, 123456.79f, 0.001f, 3.4e38f};
      case DOUBLE:
        return new Object[] {
          0d, -0d, 1d, -1.5d, 0.1d, 1e7d, 12345678.9d, 1.5e-5d, 0.001d, 1e300d, 9999999.5d
        };
      case STRING:
        return new Object[] {
          "iceberg", "", "a", "abcdefgh", "\ud83e\udd76\ud83e\udd76x", "\u65e5\u672c\u8a9e\u6587",
          "a b/c=d&~*%+\u00e9", "null"
        };
      case UUID:
        return new Object[] {UUID.fromString("f79c3e09-677c-4bbd-a479-3f349cb785e7")};
      case FIXED:
        return new Object[] {ByteBuffer.wrap(new byte[] {0, (byte) 0xff, 2})};
      case BINARY:
        return new Object[] {
          ByteBuffer.wrap(new byte[] {0, 1, 2, 3}), ByteBuffer.wrap(new byte[] {}),
          ByteBuffer.wrap(new byte[] {(byte) 0xfb, (byte) 0xff})
        };
      default:
        int scale = ((Types.DecimalType) type).scale();
        List<Object> decimals = new ArrayList<>();
        for (String text : new String[] {
          "1420", "0", "1", "-1", "-1065", "127", "128", "-128", "-129", "999999999", "255"
        }) {
          decimals.add(new BigDecimal(new java.math.BigInteger(text), scale));
        }
        return decimals.toArray();
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  static void values() {
    String[] texts = {
      "identity", "bucket[16]", "bucket[2147483647]", "truncate[3]", "truncate[50]", "year",
      "month", "day", "hour", "void"
    };
    for (Type type : TYPES) {
      for (Object value : values(type)) {
        ByteBuffer bytes = Conversions.toByteBuffer(type, value);
        Object plain = type.typeId() == Type.TypeID.FIXED ? bytes.array() : value;
        System.out.println("{\"kind\":\"value\",\"type\":" + quoted(type.toString())
            + ",\"bytes\":\"" + hex(bytes) + "\",\"json\":"
            + SingleValueParser.toJson(type, value) + "}");
        for (String text : texts) {
          Transform transform = Transforms.fromString(text);
          if (!transform.canTransform(type)) {
            continue;
          }
          Type result = transform.getResultType(type);
          SerializableFunction function = transform.bind(type);
          Object given = type.typeId() == Type.TypeID.FIXED && text.equals("identity") ? plain : value;
          Object answer = function.apply(given);
          ByteBuffer answerBytes = answer == null ? null
              : Conversions.toByteBuffer(
                  result, answer instanceof byte[] ? ByteBuffer.wrap((byte[]) answer) : answer);
          Object shown = answer instanceof CharSequence ? answer.toString() : answer;
          System.out.println("{\"kind\":\"transform\",\"type\":" + quoted(type.toString())
              + ",\"bytes\":\"" + hex(bytes) + "\",\"transform\":\"" + text + "\",\"result_type\":"
              + quoted(result.toString()) + ",\"result\":"
              + (answerBytes == null ? "null" : "\"" + hex(answerBytes) + "\"") + ",\"human\":"
              + quoted(transform.toHumanString(result, shown)) + ",\"path\":"
              + quoted(java.net.URLEncoder.encode(
                  transform.toHumanString(result, shown), java.nio.charset.StandardCharsets.UTF_8))
              + "}");
        }
      }
    }
  }

  static void compatibility() {
    String[] texts = {"identity", "bucket[4]", "truncate[4]", "year", "month", "day", "hour", "void"};
    List<Type> types = new ArrayList<>(List.of(TYPES));
    types.add(Types.GeometryType.crs84());
    types.add(Types.GeographyType.crs84());
    types.add(Types.VariantType.get());
    types.add(Types.UnknownType.get());
    types.add(Types.ListType.ofOptional(9, Types.IntegerType.get()));
    for (Type type : types) {
      for (String text : texts) {
        System.out.println("{\"kind\":\"can_transform\",\"type\":" + quoted(type.toString())
            + ",\"transform\":\"" + text + "\",\"answer\":"
            + Transforms.fromString(text).canTransform(type) + "}");
      }
    }
    String[] more = {
      "identity", "bucket[4]", "bucket[8]", "truncate[4]", "truncate[8]", "year", "month", "day",
      "hour", "void"
    };
    for (String one : more) {
      for (String other : more) {
        System.out.println("{\"kind\":\"satisfies\",\"one\":\"" + one + "\",\"other\":\"" + other
            + "\",\"answer\":"
            + Transforms.fromString(one).satisfiesOrderOf(Transforms.fromString(other)) + "}");
      }
    }
  }

  static void schemas() {
    Schema nested = new Schema(
        Types.NestedField.required(11, "id", Types.LongType.get()),
        Types.NestedField.optional(12, "Points", Types.ListType.ofOptional(20,
            Types.StructType.of(
                Types.NestedField.required(30, "x", Types.DoubleType.get()),
                Types.NestedField.optional(31, "inner", Types.ListType.ofRequired(
                    40, Types.IntegerType.get()))))),
        Types.NestedField.optional(13, "m", Types.MapType.ofOptional(21, 22,
            Types.StructType.of(Types.NestedField.required(32, "k", Types.StringType.get())),
            Types.StructType.of(Types.NestedField.required(33, "v", Types.StringType.get())))),
        Types.NestedField.optional(14, "s", Types.StructType.of(
            Types.NestedField.optional(34, "a", Types.StructType.of(
                Types.NestedField.optional(41, "b", Types.IntegerType.get()))),
            Types.NestedField.optional(35, "c", Types.DecimalType.of(9, 2)))),
        Types.NestedField.optional(15, "last", Types.GeographyType.of("srid:4269")));
    int[] last = {0};
    Schema fresh = TypeUtil.assignFreshIds(nested, () -> ++last[0]);
    System.out.println("{\"kind\":\"fresh_ids\",\"schema\":" + SchemaParser.toJson(nested)
        + ",\"fresh\":" + SchemaParser.toJson(fresh) + "}");
    for (String name : new String[] {
      "id", "ID", "Points", "points", "Points.element", "Points.element.x", "Points.x", "points.x",
      "Points.inner", "Points.inner.element", "Points.element.inner.element", "m.key", "m.key.k",
      "m.k", "m.value", "m.v", "m.value.v", "s.a.b", "S.A.B", "b", "s.c", "Points.inner.x"
    }) {
      Types.NestedField exact = nested.findField(name);
      Types.NestedField loose = nested.caseInsensitiveFindField(name);
      System.out.println("{\"kind\":\"lookup\",\"name\":\"" + name + "\",\"exact\":" + (exact == null ? null : exact.fieldId())
          + ",\"loose\":" + (loose == null ? null : loose.fieldId()) + "}");
    }
    for (String[] names : new String[][] {
      {"id"}, {"Points.x", "id"}, {"m"}, {"m.v"}, {"s.a"}, {"s.a.b"}, {"s"}, {"Points.element"}
    }) {
      System.out.println("{\"kind\":\"select\",\"names\":[\"" + String.join("\",\"", names) + "\"],\"selected\":"
          + SchemaParser.toJson(nested.select(names)) + "}");
    }
  }

  static Term term(String text) {
    if (!text.contains("(")) {
      return Expressions.ref(text);
    }
    String function = text.substring(0, text.indexOf('('));
    String[] arguments = text.substring(text.indexOf('(') + 1, text.length() - 1).split(", *");
    switch (function) {
      case "bucket":
        return Expressions.bucket(arguments[1], Integer.parseInt(arguments[0]));
      case "truncate":
        return Expressions.truncate(arguments[1], Integer.parseInt(arguments[0]));
      case "year":
        return Expressions.year(arguments[0]);
      case "month":
        return Expressions.month(arguments[0]);
      case "day":
        return Expressions.day(arguments[0]);
      default:
        return Expressions.hour(arguments[0]);
    }
  }

  // A story is a list of commits, a commit a list of steps: "+term", "+term as name", "-name or
  // term", "old>new".
  static void evolution(int version, String[][] story) {
    Schema schema = new Schema(
        Types.NestedField.required(1, "id", Types.LongType.get()),
        Types.NestedField.optional(2, "ts", Types.TimestampType.withZone()),
        Types.NestedField.optional(3, "s", Types.StringType.get()),
        Types.NestedField.optional(4, "p", Types.StructType.of(
            Types.NestedField.optional(5, "q", Types.DateType.get()))));
    TableIdentifier identifier = TableIdentifier.of("db", "t");
    PartitionSpec spec = PartitionSpec.builderFor(schema).month("ts").bucket("id", 16).build();
    Table table = CATALOG.createTable(
        identifier, schema, spec, Map.of("format-version", String.valueOf(version)));
    StringBuilder states = new StringBuilder();
    for (String[] commit : story) {
      String state;
      try {
        UpdatePartitionSpec update = table.updateSpec();
        for (String step : commit) {
          if (step.startsWith("+")) {
            String[] parts = step.substring(1).split(" as ");
            if (parts.length == 2) {
              update.addField(parts[1], term(parts[0]));
            } else {
              update.addField(term(parts[0]));
            }
          } else if (step.startsWith("-")) {
            if (step.contains("(")) {
              update.removeField(term(step.substring(1)));
            } else {
              update.removeField(step.substring(1));
            }
          } else {
            update.renameField(step.split(">")[0], step.split(">")[1]);
          }
        }
        update.commit();
        state = PartitionSpecParser.toJson(table.spec());
      } catch (RuntimeException error) {
        state = "{\"error\":" + quoted(error.getMessage()) + "}";
      }
      table.refresh();
      states.append(states.length() == 0 ? "" : ",").append(state);
    }
    StringBuilder told = new StringBuilder();
    for (String[] commit : story) {
      told.append(told.length() == 0 ? "" : ",").append("[\"")
          .append(String.join("\",\"", commit)).append("\"]");
    }
    System.out.println("{\"kind\":\"evolution\",\"version\":" + version + ",\"start\":"
        + PartitionSpecParser.toJson(table.specs().get(0)) + ",\"story\":[" + told
        + "],\"states\":[" + states + "]}");
    CATALOG.dropTable(identifier);
  }

  public static void main(String[] args) {
    CATALOG.initialize("memory", Map.of());
    CATALOG.createNamespace(Namespace.of("db"));
    values();
    compatibility();
    schemas();
    String[][][] stories = {
      {{"+day(ts)"}, {"-ts_day"}, {"+day(ts)"}},
      {{"-ts_month", "+day(ts)"}, {"-ts_day", "+month(ts)"}},
      {{"-ts_month"}, {"-id_bucket"}, {"+month(ts)", "+bucket(16, id)"}},
      {{"-month(ts)", "+month(ts)"}},
      {{"-month(ts)", "+month(ts) as m"}},
      {{"+month(ts)"}, {"+month(ts) as other"}},
      {{"+bucket(8, id)"}, {"-bucket(16, id)"}, {"+bucket(16, id) as shard"}},
      {{"+bucket(16, s) as id_bucket"}},
      {{"-id_bucket", "+bucket(16, s) as id_bucket"}, {"-id_bucket"}},
      {{"ts_month>m"}, {"m>ts_month"}},
      {{"ts_month>id_bucket"}},
      {{"ts_month>m", "-ts_month"}},
      {{"-ts_month", "ts_month>m"}},
      {{"+s", "-s"}},
      {{"+s", "s>t"}},
      {{"+s", "+s"}},
      {{"+s as id"}},
      {{"+truncate(4, s)"}, {"+truncate(8, s)"}, {"-s_trunc_4"}, {"+truncate(4, s)"}},
      {{"+year(ts)", "+day(ts)"}},
      {{"+year(ts)"}, {"+day(ts)"}},
      {{"-nothing"}},
      {{"-hour(ts)"}},
      {{"nothing>x"}},
      {{"+year(s)"}},
      {{"+none"}},
      {{"+p.q"}, {"+day(p.q)"}},
      {{"+hour(ts) as h"}, {"-h"}, {"+hour(ts)"}},
      {{"+hour(ts) as h"}, {"-h"}, {"+hour(ts) as g"}},
      {{"-ts_month"}, {"+s as ts_month"}, {"-ts_month"}, {"+month(ts)"}},
    };
    for (int version = 1; version <= 3; version += 1) {
      for (String[][] story : stories) {
        evolution(version, story);
      }
    }
  }
}
