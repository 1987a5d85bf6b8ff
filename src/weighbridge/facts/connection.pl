# How does a client reach a server?  Run by connection.py, inside both sites:
#
#   perl -e THIS listen  TRANSPORT ADDRESS PORT SECONDS BYTES    takes BYTES from one client
#   perl -e THIS connect TRANSPORT ADDRESS PORT SECONDS BYTES    sends them; then seeks the smallest TTL that arrives
#
# It needs perl-base only.  Each end prints lines of words:
#
#   namespace NUMBER                   of its network namespace
#   own ADDRESS PORT / peer ADDRESS PORT    the two ends of the connection, as its own kernel has them
#   mss BYTES                          of what it sends (TCP; tcp_info of linux/tcp.h)
#   ttl NUMBER                         the smallest with which the server is reached (the connecting end)
#   interface NAME DRIVER MTU BYTES OFFLOADS    each of the namespace, with what it carried meanwhile, both ways

use strict;
use warnings;
use Socket qw(:DEFAULT IPPROTO_IP IPPROTO_TCP IP_TTL SO_REUSEADDR);
use IO::Handle;

use constant { TCP_INFO => 11, SIOCGIFMTU => 0x8921, SIOCETHTOOL => 0x8946, EINPROGRESS => 115, DATAGRAM => 1000 };
my %OFFLOADS = (tso => 0x1e, gso => 0x23, gro => 0x2b);    # ETHTOOL_GTSO, _GGSO, _GGRO of linux/ethtool.h

my ($role, $transport, $address, $port, $seconds, $bytes) = @ARGV;
alarm $seconds;    # whatever happens, it ends
my $tcp = $transport eq 'tcp';
my $there = sockaddr_in($port, inet_aton($address) // die "no address: $address\n");

sub new_socket {
    socket(my $socket, PF_INET, $tcp ? SOCK_STREAM : SOCK_DGRAM, 0) or die "socket: $!\n";
    return $socket;
}

sub carried {      # by name, the bytes that each interface has carried so far
    my %found;
    open my $table, '<', '/proc/net/dev' or die "/proc/net/dev: $!\n";
    while (my $line = <$table>) {
        my ($name, $rest) = $line =~ /^\s*([^:\s]+):\s*(.*)/ or next;
        my @fields = split ' ', $rest;
        $found{$name} = $fields[0] + $fields[8];
    }
    return %found;
}

sub about {        # the driver of an interface, its MTU, and which offloads are on
    my ($socket, $name) = @_;
    my $request = pack 'a16 x24', $name;
    my $mtu = ioctl($socket, SIOCGIFMTU, $request) ? unpack('x16 i', $request) : 0;
    my $driver = pack 'L x192', 0x3;    # ETHTOOL_GDRVINFO
    ioctl $socket, SIOCETHTOOL, my $who = pack 'a16 P x16', $name, $driver;
    $driver = unpack 'x4 Z32', $driver;
    my @on;
    for my $offload (sort keys %OFFLOADS) {
        my $value = pack 'L L', $OFFLOADS{$offload}, 0;
        my $asked = pack 'a16 P x16', $name, $value;
        push @on, $offload if ioctl($socket, SIOCETHTOOL, $asked) && (unpack 'L L', $value)[1];
    }
    return $driver =~ /^\w+$/ ? $driver : '-', $mtu, join(',', @on) || '-';
}

sub describe {
    my ($socket, $ttl, %before) = @_;
    my %after = carried();
    my ($namespace) = (readlink('/proc/self/ns/net') // '') =~ /(\d+)/;
    print 'namespace ', $namespace // 0, "\n";
    for (['own', getsockname $socket], ['peer', getpeername $socket]) {
        my ($which, $packed) = @$_;
        next if !defined $packed;
        my ($number, $ip) = sockaddr_in $packed;
        print "$which ", inet_ntoa($ip), " $number\n";
    }
    if ($tcp && defined(my $info = getsockopt $socket, IPPROTO_TCP, TCP_INFO)) {
        my @numbers = unpack 'x8 L*', $info;
        print "mss $numbers[2]\n";
    }
    print "ttl $ttl\n" if defined $ttl;
    my $any = new_socket();
    for my $name (sort keys %after) {
        my ($driver, $mtu, $offloads) = about($any, $name);
        print "interface $name $driver $mtu ", $after{$name} - ($before{$name} // 0), " $offloads\n";
    }
}

sub reached {      # whether a connection attempt, or a datagram that is answered, gets there with this TTL
    my $ttl = shift;
    my $socket = new_socket();
    setsockopt $socket, IPPROTO_IP, IP_TTL, $ttl or die "IP_TTL: $!\n";
    $socket->blocking(0);
    my $done = connect $socket, $there;
    return 1 if $tcp && $done;
    send $socket, '?', 0 if !$tcp;
    my ($read, $write) = ('', '');
    vec($tcp ? $write : $read, fileno($socket), 1) = 1;
    return 0 if select($read, $write, undef, 0.3) < 1;
    return defined recv $socket, my $answer, 1, 0 if !$tcp;
    my $error = unpack 'i', getsockopt $socket, SOL_SOCKET, SO_ERROR;
    return $error == 0 || $error == 111;    # a refusal came from there, too
}

if ($role eq 'listen') {
    my $socket = new_socket();
    setsockopt $socket, SOL_SOCKET, SO_REUSEADDR, 1;
    bind($socket, $there) or die "bind: $!\n";
    my ($client, $got) = (undef, 0);
    my %before = carried();
    if ($tcp) {
        listen($socket, 8) or die "listen: $!\n";
        while ($got < $bytes) {    # one that sends nothing was a try
            accept($client, $socket) or die "accept: $!\n";
            $got = 0;
            syswrite $client, '+';    # it is this that tells: a proxy accepts whether or not the server is there
            while (my $count = sysread $client, my $part, 65536) { $got += $count }
        }
        describe($client, undef, %before);
    }
    else {
        while ($got < $bytes) {
            my $from = recv $socket, my $datagram, 65536, 0;
            next if !defined $from;
            $got += length $datagram;
            send $socket, '+', 0, $from if length $datagram == 1;
            connect $socket, $from if length $datagram > 1 && !getpeername $socket;
        }
        send $socket, '+', 0;
        describe($socket, undef, %before);
    }
    exit 0;
}

my $ttl;
my $answered = 0;
for my $try (1 .. 16) { $ttl = $try, last if reached($try) }
my %before = carried();
my $socket = new_socket();
connect($socket, $there) or die "connect: $!\n";
if ($tcp) {
    sysread($socket, my $greeting, 1) or die "no answer\n";
    my $left = $bytes;
    while ($left > 0) {
        my $count = syswrite $socket, "\0" x ($left < 65536 ? $left : 65536);
        die "send: $!\n" if !defined $count;
        $left -= $count;
    }
    shutdown $socket, 1;
    sysread $socket, my $rest, 1;    # until the server has closed it
}
else {
    my $sent = 0;
    while ($answered == 0 && $sent < 4 * $bytes) {    # some may be lost
        send $socket, "\0" x DATAGRAM, 0;
        $sent += DATAGRAM;
        my $ready = '';
        vec($ready, fileno($socket), 1) = 1;
        $answered = 1 if select($ready, undef, undef, 0.0005) > 0 && defined recv $socket, my $answer, 1, 0;
    }
    die "no answer\n" if !$answered;
}
describe($socket, $ttl, %before);
