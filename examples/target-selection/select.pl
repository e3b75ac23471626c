#!/usr/bin/perl
# A target selection in Perl: at most one unit of each region at a time, and no region before its turn.
#
#   select.pl [PORT]           answer questions at http://127.0.0.1:PORT/select (9000)
#   select.pl - < question     answer one question
#
# Settings of the policy: `regions`, in their order; units of other regions come last.
use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP;

my $MOST_BYTES = 8 * 2**20;
my $SECONDS    = 10;
my $JSON       = JSON::PP->new->utf8->canonical;

# The answer to a question: which units are updated now, and why not each of the others.
sub answer {
    my ($question) = @_;
    my %others;
    my %busy;    # regions with a unit that is updated and not validated
    my @free;
    my $validated = 0;
    for my $unit (@{ $question->{units} }) {
        my $id = $unit->{id};
        if (defined $unit->{updated_at}) {
            $others{$id} = defined $unit->{validated_at} ? "it is validated" : "it is being watched";
            $busy{ region($unit) } = $id if !defined $unit->{validated_at};
            $validated = 1 if defined $unit->{validated_at} && !$unit->{new};
        } elsif (length($unit->{held} // "")) {
            $others{$id} = $unit->{held};
        } else {
            push @free, $unit;
        }
    }
    if (($question->{selection}{new} // "") eq "after_first_pass" && !$validated) {
        $others{ $_->{id} } = "another unit goes first" for grep { $_->{new} } @free;
        @free = grep { !$_->{new} } @free;
    }
    my $room = room($question);
    my %rank = ranks($question->{selection}{regions} // []);
    my $last = keys %rank;
    my @update;
    for my $unit (sort { ($rank{ region($a) } // $last) <=> ($rank{ region($b) } // $last)
                         || $a->{id} cmp $b->{id} } @free) {
        my ($id, $region) = ($unit->{id}, region($unit));
        if ($busy{$region}) {
            $others{$id} = "$busy{$region} goes first in region $region";
        } elsif (@update >= $room) {
            $others{$id} = "the limit of the policy has no room";
        } else {
            push @update, $id;
            $busy{$region} = $id;
        }
    }
    my $hold = @{ $question->{units} } ? "" : "there are no units";
    return { update => \@update, others => \%others, hold => $hold };
}

sub region { return $_[0]{labels}{region} // "none" }

sub ranks {
    my ($regions) = @_;
    return map { $regions->[$_] => $_ } 0 .. $#$regions;
}

# How many more units may be updated: Lehr refuses an answer with more.
sub room {
    my ($question) = @_;
    my @units = @{ $question->{units} };
    my $most  = $question->{selection}{at_most} // scalar @units;
    if ($most =~ /^([0-9.]+)%$/) {
        my $share = @units * $1 / 100;
        $most = int($share) + ($share > int($share));
    }
    my $unvalidated = grep { defined $_->{updated_at} && !defined $_->{validated_at} } @units;
    return $most - $unvalidated;
}

# One request of a connection: the status, and the body to send.
sub respond {
    my ($client) = @_;
    my $request = <$client> // "";
    my %headers;
    while (defined(my $line = <$client>)) {
        last if $line =~ /^\r?\n$/;
        $headers{ lc $1 } = $2 if $line =~ /^([^:]+):\s*(.*?)\r?\n/;
    }
    return (405, { error => "POST a question" }) if $request !~ m{^POST /select HTTP/1\.[01]};
    my $length = $headers{"content-length"} // "";
    return (413, { error => "the question is too large" }) if $length !~ /^\d{1,9}$/ || $length > $MOST_BYTES;
    read($client, my $body, $length) == $length or return (400, { error => "the question is cut off" });
    my $given = eval { answer($JSON->decode($body)) };
    return $given ? (200, $given) : (400, { error => "this is not a question" });
}

my ($port) = (@ARGV, 9000);
if ($port eq "-") {
    local $/;
    print $JSON->encode(answer($JSON->decode(<STDIN>))), "\n";
    exit;
}
my $server = IO::Socket::INET->new(Listen => 16, LocalAddr => "127.0.0.1", LocalPort => $port, ReuseAddr => 1)
    or die "cannot listen: $@\n";
$| = 1;
printf "http://127.0.0.1:%d/select\n", $server->sockport;
$SIG{PIPE} = "IGNORE";
$SIG{CHLD} = "IGNORE";
while (1) {
    my $client = $server->accept or next;
    next if fork;    # the child answers, so that a slow client delays no other
    alarm $SECONDS;
    my ($status, $given) = respond($client);
    my $content = $JSON->encode($given);
    print $client "HTTP/1.1 $status -\r\nContent-Type: application/json\r\n",
        "Content-Length: ", length $content, "\r\nConnection: close\r\n\r\n", $content;
    exit;
}
