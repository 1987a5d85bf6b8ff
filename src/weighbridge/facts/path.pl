# Which is the largest UDP datagram that is not fragmented between two sites?  Run by path.py, inside both of them:
#
#   perl -e THIS answer ADDRESS PORT SECONDS    answers each datagram with its length, in a datagram as long
#   perl -e THIS ask    ADDRESS PORT SECONDS    prints "payload=BYTES from=OWN ADDRESS"
#
# It needs perl-base only.  Both ends send with "don't fragment" set (IP_PMTUDISC_DO: the kernel refuses what is larger
# than the path's MTU as far as it knows it, and no router may split the rest), so what is answered in full length was
# in one piece on every leg, both ways: also where a proxy receives and sends again.

use strict;
use warnings;
use Socket qw(:DEFAULT IPPROTO_IP IPPROTO_UDP IP_MTU IP_MTU_DISCOVER IP_PMTUDISC_DO);

use constant { HEADER => 'a4 N n', MARK => 'wbpm', SMALL => 16, MOST => 65507, HEADERS => 20 + 8, TRIES => 3 };

my ($role, $address, $port, $seconds) = @ARGV;
alarm $seconds;    # whatever happens, it ends
socket(my $socket, PF_INET, SOCK_DGRAM, IPPROTO_UDP) or die "socket: $!\n";
setsockopt($socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) or die "IP_MTU_DISCOVER: $!\n";
my $there = sockaddr_in($port, inet_aton($address) // die "no address: $address\n");

my ($number, $wait, $known) = (0, 0.5, MOST);

sub datagram {     # with a number, and a length that is its own or the received one's
    my ($number, $said, $length) = @_;
    return pack(HEADER, MARK, $number, $said) . "\0" x ($length - length pack HEADER, MARK, 0, 0);
}

sub answer {
    bind($socket, $there) or die "bind: $!\n";
    while (1) {
        next if !defined(my $from = recv $socket, my $asked, 65535, 0);
        my $length = length $asked;
        next if $length < SMALL;
        my ($mark, $asked_number) = unpack HEADER, $asked;
        next if $mark ne MARK;
        next if defined send $socket, datagram($asked_number, $length, $length), 0, $from;
        send $socket, datagram($asked_number, $length, SMALL), 0, $from;    # too large for the way back
    }
}

sub most {         # above this the kernel lets nothing out; routers that answer make it smaller
    my $mtu = getsockopt $socket, IPPROTO_IP, IP_MTU;
    $known = unpack('i', $mtu) - HEADERS if defined $mtu && unpack('i', $mtu) - HEADERS < $known;
    return $known;
}

sub arrives {      # the seconds waited for it to be back; 0 where a datagram of this size is not in so many tries
    my ($size, $tries) = @_;
    my $first = $number + 1;
    for (1 .. $tries) {
        return 0 if $size > most();
        getsockopt $socket, SOL_SOCKET, SO_ERROR;    # forget what was said of earlier ones
        my $sent = send $socket, datagram(++$number, $size, $size), 0;
        my $left = $wait;
        while ($left > 0) {
            my $ready = '';
            vec($ready, fileno($socket), 1) = 1 if defined $sent;
            (my $found, $left) = select $ready, undef, undef, $left;    # Linux gives the time that is left
            last if $found < 1;
            my $answered = defined recv($socket, my $answer, 65535, 0);
            last if !$answered && $size > most();
            next if !$answered || length $answer < SMALL;
            my ($mark, $which) = unpack HEADER, $answer;
            next if $mark ne MARK || $which < $first;
            return length $answer == $size ? $wait - $left || 1e-6 : 0;
        }
    }
    return 0;
}

sub ask {
    connect($socket, $there) or die "connect: $!\n";
    arrives(SMALL, 8) or die "no answer\n";
    my ($slowest) = sort { $b <=> $a } map { arrives(SMALL, TRIES) } 1 .. 5;
    $wait = 0.05 + 3 * $slowest;
    my ($low, $high, $try) = (SMALL, most(), most());
    while (1) {
        while ($low < $high) {    # low arrives, nothing above high does
            if (arrives($try, TRIES)) { $low = $try } else { $high = $try - 1 }
            $high = most() if most() < $high;
            $try = int(($low + $high + 1) / 2);
        }
        last if $low >= most() || !arrives($low + 1, 3 * TRIES);    # or were they only lost?
        ($low, $high) = ($low + 1, most());
        $try = $high;
    }
    $low = most() if most() < $low;
    my (undef, $own) = sockaddr_in(getsockname $socket);
    print "payload=$low from=", inet_ntoa($own), "\n";
}

if ($role eq 'answer') { answer() } else { ask() }
