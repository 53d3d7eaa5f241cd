# SPDX-License-Identifier: MIT
# data/*.csv -> C tables. Usage: awk -v header=cluster/presets.h -f tools/presets.awk data/gpus.csv ...
# A column named *_tflops, *_gb, *_gbps, gbytes_per_s or *_us is scaled to the base unit of the
# field it fills; a column without digits only is a string; an empty number is NaN. A cell in double
# quotes may hold commas. into: type.field is the offset of that field. A file of
# one column is a list of words. KNEE_TABLE_MAX of the header, where it is
# defined, bounds the rows.
BEGIN {
    scale["bf16_tflops"] = "e12"; scale["fp8_tflops"] = "e12"; scale["fp32_tflops"] = "e12"; scale["fp4_tflops"] = "e12"; scale["memory_gb"] = "e9"
    scale["memory_gbps"] = "e9"; scale["gbytes_per_s"] = "e9"
    split("name full_name node_link net_link gpu cluster origin base family summary scope owner constant op architecture profile words without precision since last kind standard meaning id title key test limit says cure also word and path xml text query rule needs does fix sentence mark source step type called commands run ends magic any all none section", words, " ")
    for (i in words) text[words[i]] = 1
    field["bf16_tflops"] = "bf16_flops"; field["fp8_tflops"] = "fp8_flops"; field["fp32_tflops"] = "fp32_flops"; field["fp4_tflops"] = "fp4_flops"
    field["memory_gb"] = "memory_bytes"; field["memory_gbps"] = "memory_bytes_per_s"
    field["gbytes_per_s"] = "bytes_per_s"; field["called"] = "what"; field["holds"] = "test"
    split("title key test limit says also sentence source ends magic any all none", words, " ")
    for (i in words) optional[words[i]] = 1 # empty: NULL
    enum["severity"] = "KNEE_"; enum["hurts"] = "KNEE_HURTS_"; enum["where"] = "KNEE_IN_"; enum["failure"] = "KNEE_FAILED_"; enum["what"] = "TRAIN_"; enum["role"] = "KNEE_ROLE_"; enum["reads"] = "FACT_"; enum["format"] = "KNEE_FROM_"; enum["unit"] = "KNEE_UNIT_"; enum["form"] = "KNEE_IMPORT_"
    place["class"] = "KNEE_HANG_" # the row stands at this index
    print "/* Made by tools/presets.awk from data/: edit those files. */"
    for (i = split(header, words, " "); i > 0; i--) print "#include \"" words[i] "\""
    print "#include \"base/keys.h\"\n#include <math.h>\n#include <stddef.h>"
}
function finish() {
    if (!table) return
    printf "};\nconst size_t knee_%s_count = sizeof knee_%s / sizeof *knee_%s;\n", table, table, table
    printf "#ifdef KNEE_%s_MAX\n_Static_assert(sizeof knee_%s / sizeof *knee_%s <= KNEE_%s_MAX, \"too many rows\");\n#endif\n", toupper(table), table, table, toupper(table)
}
# The cells of a line: cell[1..cells].
function cut(line,    at, quoted, c) {
    cells = 1; cell[1] = ""
    if (index(line, "\"") == 0) { cells = split(line, cell, ","); return }
    for (at = 1; at <= length(line); at++) {
        c = substr(line, at, 1)
        if (quoted && c == "\"" && substr(line, at + 1, 1) == "\"") { cell[cells] = cell[cells] c; at++ }
        else if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) cell[++cells] = ""
        else cell[cells] = cell[cells] c
    }
}
# Bytes that are no text are escaped as in C.
function bytes(value) { gsub(/"/, "\\\"", value); return "\"" value "\"" }
function string(value) { gsub(/\\/, "\\\\", value); gsub(/"/, "\\\"", value); return "\"" value "\"" }
FNR == 1 {
    finish()
    table = FILENAME; sub(/.*\//, "", table); sub(/\.csv$/, "", table)
    type = table; sub(/ies$/, "ys", type); sub(/s$/, "", type)
    columns = 0
}
/^#/ || /^$/ { next }
{ cut($0) }
!columns {
    columns = cells
    for (i = 1; i <= cells; i++) {
        key = head[i] = cell[i]
        if (key ~ /_us$/) { scale[key] = "e-6"; field[key] = key; sub(/_us$/, "_s", field[key]) }
    }
    if (columns > 1) printf "const struct knee_%s knee_%s[] = {\n", type, table
    else printf "const char *const knee_%s[] = {\n", table # a list of words
    next
}
cells != columns {
    printf "%s:%d: %d columns, %d wanted\n", FILENAME, FNR, cells, columns > "/dev/stderr"
    exit bad = 1
}
columns == 1 { print "    " string(cell[1]) ","; next }
{
    first = (head[1] in place) ? 2 : 1
    if (first == 2) printf "    [%s%s] = {", place[head[1]], toupper(cell[1])
    else printf "    {"
    for (i = first; i <= cells; i++) {
        key = head[i]
        is = cell[i]
        name = key in field ? field[key] : key
        if (key in optional && is == "") value = "NULL"
        else if (key == "origin" || key == "meaning" || key == "summary") value = "KNEE_OFF_PAGE(" string(is) ")"
        else if (key == "magic") value = bytes(is)
        else if (key in text) value = string(is)
        else if (key == "into") { dot = index(is, "."); value = "offsetof(struct " substr(is, 1, dot - 1) ", " substr(is, dot + 1) ")" }
        else if (key in enum) value = enum[key] toupper(is)
        else if (is == "") value = "NAN"
        else value = is (key in scale ? (is ~ /e/ ? "*1" : "") scale[key] : "")
        printf("%s.%s = %s", (i > first) ? ", " : "", name, value)
    }
    print "},"
}
END { if (!bad) finish(); exit bad }
