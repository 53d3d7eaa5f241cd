# SPDX-License-Identifier: MIT
# include/knee.h -> docs/reference/api.md: sections, comments as prose, declarations as code.
BEGIN { print "# The library\n\nMade from `include/knee.h` by `make docs`. `examples/predict.c` is a whole program; [library.md](library.md) says how to build against it and what holds there.\n" }
function code_end() { if (in_code) { print "```\n"; in_code = 0 } }
/^#|^extern "C"|^}$/ && !in_struct { next }
/SPDX/ || /^KNEE_PUBLIC_/ { next }
/^\/\* ---- / {
    code_end(); title = $0; sub(/^\/\* -+ /, "", title); sub(/ -+ \*\/$/, "", title)
    print "## " title "\n"; next
}
/^\/\*/ && !in_struct { code_end(); in_comment = 1 }
in_comment {
    line = $0; done = line ~ /\*\/$/
    sub(/^\/\*+ ?/, "", line); sub(/ ?\*\/$/, "", line); sub(/^ \* ?/, "", line); sub(/^ \*$/, "", line)
    if (line != "" || !done) print line
    if (done) { in_comment = 0; print "" }
    next
}
/^$/ { if (in_code && !in_struct) code_end(); next }
{
    if (!in_code) { print "```c"; in_code = 1 }
    print
    if ($0 ~ /\{$/) in_struct = 1
    if ($0 ~ /^}/) in_struct = 0
}
END { code_end() }
