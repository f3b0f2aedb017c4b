# needs: perl
perl -MFile::Temp -MIPC::Open3 -MSocket -e '
  my $file = File::Temp->new; print $file "x"; close $file; print -s "$file", "\n";
  my $pid = open3(my $in, my $out, undef, "cat"); print $in "through\n"; close $in; print <$out>; waitpid $pid, 0; print $? >> 8, "\n";
  socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die; syswrite $a, "pair"; sysread $b, my $text, 4; print "$text\n";
  print join(" ", map { $_ * 2 } 1 .. 3), "\n"; print((getpwuid(0))[0], "\n")'
