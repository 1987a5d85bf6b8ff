package weighbridge;

import com.tangosol.net.DatagramTest;

import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The publisher of Coherence's Datagram Test, which ends when its listener has received enough.
 *
 * <p>Arguments: own address and port, the listener's address and port, then the test's own. Ends with code 0 once the
 * {@link DatagramListener} said that it has enough, with 1 where that connection cannot be made or is lost.
 */
public final class DatagramPublisher {
    private DatagramPublisher() {
    }

    public static void main(String[] arguments) throws Exception {
        String peer = arguments[2] + ":" + arguments[3];
        List<String> test = new ArrayList<>(Arrays.asList(arguments).subList(4, arguments.length));
        test.addAll(List.of("-local", arguments[0] + ":" + arguments[1], peer));
        Socket control;
        try {
            control = new Socket(arguments[2], Integer.parseInt(arguments[3]));
        } catch (IOException failure) {
            System.err.println("no listener at " + peer + ": " + failure.getMessage());
            System.exit(1);
            return;
        }
        Thread waiting = new Thread(() -> System.exit(isEnough(control) ? 0 : 1));
        waiting.setDaemon(true);
        waiting.start();
        DatagramTest.main(test.toArray(new String[0]));
    }

    /** Whether the listener said so; false where it went away. */
    private static boolean isEnough(Socket control) {
        try (control) {
            if (control.getInputStream().read() >= 0) {
                return true;
            }
            System.err.println("the listener ended before it had enough");
        } catch (IOException failure) {
            System.err.println("the connection with the listener was lost: " + failure.getMessage());
        }
        return false;
    }
}
