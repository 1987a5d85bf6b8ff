package weighbridge;

import com.tangosol.net.DatagramTest;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.DatagramSocket;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The listener of Coherence's Datagram Test, which tells its publisher when enough packets have been received.
 *
 * <p>The test itself has no such end: a publisher stops after a number of packets sent, or never. This reads the
 * reports of the test as they are printed, and after the one that counts enough it says so on a TCP connection that
 * the publisher opened at the start. Arguments: address, port (of UDP and of that connection), packets to be received,
 * packets that the receive buffer holds (0: as many as the system grants), then the test's own.
 */
public final class DatagramListener {
    private static final Pattern RECEIVED = Pattern.compile("received: (\\d+) of \\d+");

    private static final int START_S = 5;

    private DatagramListener() {
    }

    public static void main(String[] arguments) throws Exception {
        InetAddress address = concrete(InetAddress.getByName(arguments[0]));
        int port = Integer.parseInt(arguments[1]);
        long enough = Long.parseLong(arguments[2]);
        int buffer = Integer.parseInt(arguments[3]);
        List<String> test = new ArrayList<>(Arrays.asList(arguments).subList(4, arguments.length));
        int packetSize = Integer.parseInt(test.get(test.indexOf("-packetSize") + 1));
        test.addAll(List.of("-local", address.getHostAddress() + ":" + port));
        test.addAll(List.of("-rxBufferSize", String.valueOf(buffer > 0 ? buffer : most(packetSize))));

        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch received = new CountDownLatch(1);
        Reports reports = new Reports(System.err, enough, started, received);
        System.setErr(new PrintStream(reports, true, StandardCharsets.UTF_8));
        DatagramTest.main(test.toArray(new String[0]));
        if (!started.await(START_S, TimeUnit.SECONDS)) {
            System.err.println("the Datagram Test does not listen, for the reason that it gave");
            System.exit(1);
        }
        try (ServerSocket control = new ServerSocket()) {
            control.setReuseAddress(true);
            control.bind(new InetSocketAddress(address, port));
            while (true) {
                Thread waiting = new Thread(teller(control.accept(), received));
                waiting.setDaemon(true);
                waiting.start();
            }
        }
    }

    /** The address itself; for the wildcard, which the test does not take, this machine's on its first network. */
    private static InetAddress concrete(InetAddress address) throws IOException {
        if (!address.isAnyLocalAddress()) {
            return address;
        }
        return NetworkInterface.networkInterfaces()
                .flatMap(NetworkInterface::inetAddresses)
                .filter(own -> own instanceof Inet4Address && !own.isLoopbackAddress())
                .findFirst()
                .orElse(InetAddress.getByName("127.0.0.1"));
    }

    /** How many packets the largest receive buffer holds that the system grants. */
    private static int most(int packetSize) throws IOException {
        try (DatagramSocket socket = new DatagramSocket(null)) {
            socket.setReceiveBufferSize(1 << 30);
            return Math.max(1, socket.getReceiveBufferSize() / packetSize);
        }
    }

    private static Runnable teller(Socket publisher, CountDownLatch received) {
        return () -> {
            try (publisher) {
                received.await();
                publisher.getOutputStream().write("enough\n".getBytes(StandardCharsets.US_ASCII));
            } catch (IOException gone) {
                System.err.println("the publisher cannot be told to stop: " + gone);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        };
    }

    /** Passes everything on, and counts down after the report in which enough packets were received. */
    private static final class Reports extends OutputStream {
        private final PrintStream to;
        private final long enough;
        private final CountDownLatch started;
        private final CountDownLatch received;
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();
        private boolean counted;
        private boolean last;

        Reports(PrintStream to, long enough, CountDownLatch started, CountDownLatch received) {
            this.to = to;
            this.enough = enough;
            this.started = started;
            this.received = received;
        }

        @Override
        public synchronized void write(int character) {
            to.write(character);
            if (character != '\n') {
                line.write(character);
                return;
            }
            to.flush();
            String text = line.toString(StandardCharsets.UTF_8);
            line.reset();
            if (text.startsWith("starting listener:")) {
                started.countDown();
            }
            Matcher match = RECEIVED.matcher(text);
            counted = counted || match.find() && Long.parseLong(match.group(1)) >= enough;
            last = last || counted && text.equals("Now:"); // the report of the interval follows that of the whole
            if (last && text.contains("completed:")) {
                received.countDown();
            }
        }
    }
}
