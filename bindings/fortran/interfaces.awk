# Prints hgemm.f90 with interfaces of all functions of hgemm.h between its two marks.
#
#   awk -f interfaces.awk hgemm.h hgemm.f90 >new.f90
#
# Each function has an interface body of its own, because gfortran passes all arguments by reference from the
# second call on where a function is declared as procedure(some_abstract_interface).

BEGIN {
    fortran["int"] = "integer(c_int)"
    fortran["int32_t"] = "integer(c_int32_t)"
    fortran["uint32_t"] = "integer(c_int32_t)"
    fortran["int64_t"] = "integer(c_int64_t)"
    fortran["size_t"] = "integer(c_size_t)"
    fortran["float"] = "real(c_float)"
    fortran["void *"] = "type(c_ptr)"
    fortran["const char *"] = "type(c_ptr)"
    result["hgemm_status_t"] = "status"
    result["const char *"] = "text"
    result["int"] = "number"
    widest = 110
}

# The first file, the header, becomes one line of statements. Its section titles are kept as some.
NR == FNR {
    if (sub(/^\/\* ---- /, "") && sub(/ -+ \*\/$/, ""))
        header = header "@" $0 ";"
    else if (!/^#/)
        header = header " " $0
    next
}

# The second file is copied but for what lies between the marks.
/! ==== End of the functions/ { is_generated = 0 }
!is_generated { print }
/! ==== Functions/ {
    is_generated = 1
    count = split(without_comments(header), statements, ";")
    for (i = 1; i <= count; ++i)
        read_statement(statements[i])
    if (functions == 0)
        fail("the header declares no function")
}

function fail(why) {
    print "interfaces.awk: " why >"/dev/stderr"
    exit 1
}

function without_comments(text,    kept, begin) {
    while (begin = index(text, "/*")) {
        kept = kept substr(text, 1, begin - 1)
        text = substr(text, begin)
        text = substr(text, index(text, "*/") + 2)
    }
    return kept text
}

function read_statement(text) {
    gsub(/ +/, " ", text)
    sub(/^ /, "", text)
    if (sub(/^@/, "", text))
        title = text
    else if (text ~ /typedef HGEMM_ENUM\(/)
        fortran[between(text, "HGEMM_ENUM(", ")") "_t"] = "integer(c_int)"
    else if (text ~ /typedef struct [a-zA-Z_]+ \*/)
        fortran[last_word(text)] = "type(c_ptr)"
    else if (text ~ /typedef .*\(\*/)
        fortran[between(text, "(*", ")")] = "type(c_funptr)"
    else if (text ~ /^} [a-z_]+$/)
        fortran[last_word(text)] = "type(" last_word(text) ")"
    else if (sub(/^.*HGEMM_API /, "", text))
        write_function(text)
}

function last_word(text) {
    sub(/.*[ *]/, "", text)
    return text
}

function between(text, before, behind) {
    text = substr(text, index(text, before) + length(before))
    return substr(text, 1, index(text, behind) - 1)
}

# What stands in front of the name: "const hgemm_half_t *" of "const hgemm_half_t *A".
function type_of(declaration) {
    sub(/[a-zA-Z0-9_]+$/, "", declaration)
    sub(/ $/, "", declaration)
    return declaration
}

# An argument of a type of C. Addresses of elements and of words of device memory, and of arrays of addresses, are
# passed on as they are; through any other pointer the function reads or writes while it runs.
function attributes_of(type,    pointed, is_read_only) {
    if (type in fortran)
        return fortran[type] ", value"
    if (type == "char *")
        return "character(kind=c_char), intent(inout)"
    if (type ~ /void \*$|float16_t \*$|half_t \*$|uint32_t \*$|\*const \*$/)
        return "type(c_ptr), value"
    pointed = type
    is_read_only = sub(/^const /, "", pointed)
    sub(/ ?\*$/, "", pointed)
    if (!(pointed in fortran))
        fail("what is " type " in Fortran?")
    if (is_read_only)
        return fortran[pointed] ", intent(in)"
    return fortran[pointed] ", intent(" (pointed ~ /_(args|blocks|options|report)_t$/ ? "inout)" : "out)")
}

function write_function(text,    name, type, arguments, n, i, names, attributes, lists, order, kinds, kind) {
    if (title != "")
        print "        ! ---- " title
    title = ""
    ++functions

    n = split(between(text, "(", ")"), arguments, / *, */)
    text = substr(text, 1, index(text, "(") - 1)
    name = last_word(text)
    type = type_of(text)
    if (type != "void" && !(type in result))
        fail("how is the result of " name " to be called?")
    for (i = 1; i <= n && arguments[i] != "void"; ++i) {
        attributes = attributes_of(type_of(arguments[i]))
        if (lists[attributes] == "")
            order[++kinds] = attributes
        lists[attributes] = lists[attributes] (lists[attributes] == "" ? " :: " : ", ") last_word(arguments[i])
        if (attributes ~ /^character/)
            lists[attributes] = lists[attributes] "(*)"
        names = names (i > 1 ? ", " : "") last_word(arguments[i])
    }

    kind = type == "void" ? "subroutine" : "function"
    write_head(kind " " name "(" names ") ",
               "bind(c, name='" name "')" (type == "void" ? "" : " result(" result[type] ")"))
    print "            import"
    for (i = 1; i <= kinds; ++i)
        print "            " order[i] lists[order[i]]
    if (type != "void")
        print "            " fortran[type] " :: " result[type]
    print "        end " kind "\n"
}

# In one line, else with the binding on a line of its own.
function write_head(text, binding,    margin, last) {
    margin = "        "
    if (length(margin text binding) <= widest) {
        print margin text binding
        return
    }
    for (; length(margin text) >= widest; text = substr(text, last + 1)) {
        for (last = widest - length(margin) - 1; substr(text, last, 1) != " "; --last)
            ;
        print margin substr(text, 1, last) "&"
        margin = "                "
    }
    print margin text "&"
    print "            " binding
}
