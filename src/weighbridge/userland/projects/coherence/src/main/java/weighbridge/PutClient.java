package weighbridge;

import com.tangosol.net.CacheFactory;
import com.tangosol.net.DistributedCacheService;
import com.tangosol.net.NamedCache;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.zip.Deflater;

import org.HdrHistogram.Histogram;

/**
 * Puts objects into a cache that another member of the cluster stores, one at a time, for a given time.
 *
 * <p>Each step removes the previous key and puts the next one with a value of random characters, so that one object is
 * kept. Only the put itself is timed. Arguments: warm-up seconds (thrown away), measured seconds, characters of a
 * value. At the end one line of JSON goes to standard output: objects put, seconds, objects of each second begun, the
 * number of members of the cluster, and the latency of a put in nanoseconds: its mean, and an HDR histogram (V2,
 * compressed, base64). Everything else goes to standard error.
 */
public final class PutClient {
    private static final long LONGEST_NS = 60_000_000_000L;
    private static final long STORAGE_WAIT_MS = 30_000;
    private static final byte[] ALPHABET =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".getBytes(StandardCharsets.ISO_8859_1);

    private final NamedCache<Long, String> cache;
    private final byte[] value;
    private final SplittableRandom random = new SplittableRandom();
    private final Histogram latency = new Histogram(1, LONGEST_NS, 3);
    private final List<Long> perSecond = new ArrayList<>();
    private long key;
    private long inPut;

    private PutClient(NamedCache<Long, String> cache, int length) {
        this.cache = cache;
        this.value = new byte[length];
    }

    public static void main(String[] arguments) throws Exception {
        double warmUp = Double.parseDouble(arguments[0]);
        double duration = Double.parseDouble(arguments[1]);
        int length = Integer.parseInt(arguments[2]);
        int code = 0;
        try {
            NamedCache<Long, String> cache = CacheFactory.getCache("put");
            if (!waitForStorage(cache)) {
                System.err.println("no storage member joined within " + STORAGE_WAIT_MS / 1000 + " s");
                code = 1;
            } else {
                cache.clear();
                new PutClient(cache, length).measure(warmUp, duration);
            }
        } catch (RuntimeException failure) {
            failure.printStackTrace();
            System.err.println("the put client failed: " + failure);
            code = 1;
        } finally {
            CacheFactory.shutdown();
        }
        System.exit(code);
    }

    /** Whether another member stores the cache, once it does: a storage member joins before its service has started. */
    private static boolean waitForStorage(NamedCache<Long, String> cache) throws InterruptedException {
        DistributedCacheService service = (DistributedCacheService) cache.getCacheService();
        long end = System.currentTimeMillis() + STORAGE_WAIT_MS;
        while (service.getOwnershipEnabledMembers().isEmpty()) {
            if (System.currentTimeMillis() > end) {
                return false;
            }
            Thread.sleep(10);
        }
        return true;
    }

    private void measure(double warmUp, double duration) {
        put(warmUp);
        latency.reset();
        inPut = 0;
        perSecond.clear();
        long begin = System.nanoTime();
        long objects = put(duration);
        double seconds = (System.nanoTime() - begin) / 1e9;
        int members = CacheFactory.getCluster().getMemberSet().size();
        System.out.println("{\"objects\": " + objects
                + ", \"seconds\": " + seconds
                + ", \"per_second\": [" + perSecond.stream().map(String::valueOf).collect(Collectors.joining(", "))
                + "], \"members\": " + members
                + ", \"kept\": " + cache.size()
                + ", \"latency_mean_ns\": " + (double) inPut / objects
                + ", \"latency_ns\": \"" + encoded() + "\"}");
        System.out.flush();
    }

    /** Put for some seconds; gives how many objects were put. */
    private long put(double seconds) {
        long begin = System.nanoTime();
        long length = Math.round(seconds * 1e9);
        long objects = 0;
        long inSecond = 0;
        long second = 1;
        for (long now = begin; now - begin < length; ) {
            cache.remove(key);
            String next = randomText();
            long start = System.nanoTime();
            cache.put(++key, next);
            now = System.nanoTime();
            latency.recordValue(Math.min(now - start, LONGEST_NS));
            inPut += now - start;
            objects++;
            for (; now - begin >= second * 1_000_000_000L; second++) {
                perSecond.add(inSecond);
                inSecond = 0;
            }
            inSecond++;
        }
        return objects;
    }

    /** Random characters, ten of each 64 random bits: about half a microsecond. */
    private String randomText() {
        long bits = 0;
        for (int place = 0; place < value.length; place++) {
            bits = place % 10 == 0 ? random.nextLong() : bits >>> 6;
            value[place] = ALPHABET[(int) (bits & 63)];
        }
        return new String(value, StandardCharsets.ISO_8859_1);
    }

    private String encoded() {
        ByteBuffer buffer = ByteBuffer.allocate(latency.getNeededByteBufferCapacity());
        int size = latency.encodeIntoCompressedByteBuffer(buffer, Deflater.BEST_COMPRESSION);
        byte[] bytes = new byte[size];
        buffer.flip();
        buffer.get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
