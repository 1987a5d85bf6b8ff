# Does a TCP connection between two sites come about?  Run by path.py, inside both of them:
#
#   perl -e THIS listen  ADDRESS PORT SECONDS    sends a byte over each connection
#   perl -e THIS connect ADDRESS PORT SECONDS    ends well where that byte arrives
#
# It needs perl-base only.  The byte is what tells: a proxy on the way accepts whether or not the server is there.

use strict;
use warnings;
use Socket;

my ($role, $address, $port, $seconds) = @ARGV;
alarm $seconds;    # whatever happens, it ends
socket(my $socket, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
my $there = sockaddr_in($port, inet_aton($address) // die "no address: $address\n");

if ($role eq 'listen') {
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1) or die "SO_REUSEADDR: $!\n";
    bind($socket, $there) or die "bind: $!\n";
    listen($socket, 8) or die "listen: $!\n";
    while (accept(my $connection, $socket)) {
        syswrite $connection, '+';
        sysread $connection, my $rest, 1;    # until the client has closed it: no port is left waiting here
        alarm $seconds;
    }
}
connect($socket, $there) or die "connect: $!\n";
exit(sysread($socket, my $byte, 1) ? 0 : 1);
