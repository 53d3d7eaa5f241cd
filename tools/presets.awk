# SPDX-License-Identifier: MIT
# data/*.csv -> C tables. Usage: awk -v header=cluster/presets.h -f tools/presets.awk data/gpus.csv ...
# A column named *_tflops, *_gb, *_gbps, gbytes_per_s or *_us is scaled to the base unit of the
# field it fills; a column without digits only is a string; an empty number is NaN.
BEGIN {
    FS = ","
    scale["bf16_tflops"] = "e12"; scale["fp8_tflops"] = "e12"; scale["fp4_tflops"] = "e12"; scale["memory_gb"] = "e9"
    scale["memory_gbps"] = "e9"; scale["gbytes_per_s"] = "e9"
    split("name full_name node_link net_link gpu cluster origin base family summary scope owner constant op architecture profile words without precision since last kind standard meaning", words, " ")
    for (i in words) text[words[i]] = 1
    field["bf16_tflops"] = "bf16_flops"; field["fp8_tflops"] = "fp8_flops"; field["fp4_tflops"] = "fp4_flops"
    field["memory_gb"] = "memory_bytes"; field["memory_gbps"] = "memory_bytes_per_s"
    field["gbytes_per_s"] = "bytes_per_s"
    print "/* Made by tools/presets.awk from data/: edit those files. */"
    print "#include \"" header "\"\n#include <math.h>"
}
function finish() { if (table) printf "};\nconst size_t knee_%s_count = sizeof knee_%s / sizeof *knee_%s;\n", table, table, table }
FNR == 1 {
    finish()
    table = FILENAME; sub(/.*\//, "", table); sub(/\.csv$/, "", table)
    type = table; sub(/s$/, "", type)
    columns = 0
}
/^#/ || /^$/ { next }
!columns {
    columns = NF
    for (i = 1; i <= NF; i++) {
        head[i] = $i
        if ($i ~ /_us$/) { scale[$i] = "e-6"; field[$i] = $i; sub(/_us$/, "_s", field[$i]) }
    }
    printf "const struct knee_%s knee_%s[] = {\n", type, table
    next
}
NF != columns {
    printf "%s:%d: %d columns, %d wanted\n", FILENAME, FNR, NF, columns > "/dev/stderr"
    exit bad = 1
}
{
    printf "    {"
    for (i = 1; i <= NF; i++) {
        key = head[i]
        name = key in field ? field[key] : key
        if (key in text) value = "\"" $i "\""
        else if ($i == "") value = "NAN"
        else value = $i (key in scale ? ($i ~ /e/ ? "*1" : "") scale[key] : "")
        printf("%s.%s = %s", (i > 1) ? ", " : "", name, value)
    }
    print "},"
}
END { if (!bad) finish(); exit bad }
