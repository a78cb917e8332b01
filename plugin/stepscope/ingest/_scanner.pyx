# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
"""One pass over the bytes of trace events, into columns, without the GIL.

It takes events that are whole, valid JSON and plain, as almost all are, and stops at the first
that is not: `documents` reads that one and calls again. So the two readers can differ only in what
is written here, and here is nothing that repairs.

Not plain, though valid, and left to Python: fields that are objects, keys with escapes or twice in
one event, whole numbers of more than 18 digits in a field, times with an exponent, brackets more
than 64 deep, more than 512 arguments, another writer's document among the events.

Memory safety: `end` stands `PADDING` bytes before the end of what may be read. No token begins at
or behind `end`; loops without a bound of their own look at it; tokens with a bound (18 digits, 8
bytes at once) stay within the padding. `make fuzz` runs this under AddressSanitizer.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import os

from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyBUF_SIMPLE, PyObject_GetBuffer

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "The scanner reads eight bytes at once, the first lowest: traces are read in Python here."
    #endif
    #define ONES 0x0101010101010101ULL
    #define HIGH 0x8080808080808080ULL
    #define LINE_AND_BLANKS 0x202020202020200AULL
    #define LOW_BITS 0x7F7F7F7F7F7F7F7FULL
    #define ZEROS 0x3030303030303030ULL  /* the digit */
    #define BEYOND_NINE 0x7676767676767676ULL
    #define PAIRS 0x000000FF000000FFULL
    #define HUNDREDS 0x000F424000000064ULL  /* 100 and 1,000,000 << 32 */
    #define ONES_OF_PAIRS 0x0000271000000001ULL  /* 1 and 10,000 << 32 */
    #define MIX_1 0x9E3779B97F4A7C15ULL
    #define MIX_2 0xD6E8FEB86659FD93ULL
    #define SIP_0 0x736F6D6570736575ULL
    #define SIP_1 0x646F72616E646F6DULL
    #define SIP_2 0x6C7967656E657261ULL
    #define SIP_3 0x7465646279746573ULL
    #define NO_TIME INT64_MIN
    #define LARGEST_TIME 4611686018427387903LL  /* 2**62 - 1 ns */
    #if defined(_MSC_VER)
    #include <intrin.h>
    static inline int lowest_bit(uint64_t word) {
        unsigned long index; _BitScanForward64(&index, word); return (int)index;
    }
    #else
    static inline int lowest_bit(uint64_t word) { return __builtin_ctzll(word); }
    #endif
    """
    int lowest_bit(uint64_t word) noexcept nogil
    const uint64_t ONES
    const uint64_t HIGH
    const uint64_t LINE_AND_BLANKS
    const uint64_t LOW_BITS
    const uint64_t ZEROS
    const uint64_t BEYOND_NINE
    const uint64_t PAIRS
    const uint64_t HUNDREDS
    const uint64_t ONES_OF_PAIRS
    const uint64_t MIX_1
    const uint64_t MIX_2
    const uint64_t SIP_0
    const uint64_t SIP_1
    const uint64_t SIP_2
    const uint64_t SIP_3
    const int64_t NO_TIME
    const int64_t LARGEST_TIME

cdef enum:
    PADDING = 64
    STAGED = 512
    DEEPEST = 64
    EXAMPLES = 3
    CATEGORIES = 64

# What became of an attempt.
cdef enum:
    TAKEN = 0
    STARVED = 1
    ODD = 2
    NO_MEMORY = 3

# Texts in a row of slots, beyond which their hashes collide on purpose: by chance, a table of 2**30
# texts has a hundred.
cdef enum:
    LONGEST_CHAIN = 256

# How an argument's value is kept. `scanned.py` knows these numbers, too.
cdef enum:
    WHOLE = 0      # the number itself
    DECIMAL = 1    # digits * 16 + how many of them are behind the point
    PLAIN = 2      # code of a text as it is
    ESCAPED = 3    # code of a text between its quotes, with escapes
    CONTAINER = 4  # code of an object or list as written
    NUMBER = 5     # code of any other number as written
    YES = 6
    NO = 7
    NOTHING = 8    # null: not kept

# The columns of codes, in the order in which their texts are given codes.
cdef enum:
    PH = 0
    CAT = 1
    NAME = 2
    PID = 3
    TID = 4
    ID = 5
    CODES = 6
    TS = 6
    DUR = 7
    ARGS = 8
    OTHER = 9


cdef class Memory:
    """A C array that was handed over."""

    cdef void* data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 0, flags)


cdef object handed_over(void* data, Py_ssize_t size):
    """Own an array that malloc gave, cut to what is used of it."""
    cdef Memory memory = Memory.__new__(Memory)
    cdef void* cut = realloc(data, size if size > 0 else 1)
    memory.data = cut if cut != NULL else data
    memory.size = size
    return memoryview(memory)


# --- texts, each once ------------------------------------------------------------------------------

cdef struct Text:
    uint64_t hash
    int64_t offset
    int64_t size
    int64_t tag


cdef struct Texts:
    uint8_t* bytes
    int64_t used
    int64_t room
    Text* texts
    int64_t count
    int64_t capacity
    int32_t* slots  # index into `texts`, or -1
    int64_t slot_mask
    uint64_t[2] secret
    bint is_secret  # whether the hashes depend on the secret


cdef inline uint64_t load(const uint8_t* place) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, place, 8)
    return word


cdef inline uint64_t first_bytes(const uint8_t* place, int64_t count) noexcept nogil:
    """Return the first 1 to 8 bytes, the rest zero. Up to 7 more bytes are looked at."""
    cdef int unwanted = <int>(64 - count * 8)
    return (load(place) << unwanted) >> unwanted


cdef inline bint is_same(const uint8_t* one, const uint8_t* other, int64_t size) noexcept nogil:
    """Compare bytes. Up to 7 bytes behind both are looked at."""
    while size >= 8:
        if load(one) != load(other):
            return False
        one += 8
        other += 8
        size -= 8
    return size <= 0 or first_bytes(one, size) == first_bytes(other, size)


cdef inline uint64_t hashed(const uint8_t* text, int64_t size, int64_t tag) noexcept nogil:
    """Mix all bytes of a text. Up to 7 bytes behind it are looked at."""
    cdef uint64_t found = (<uint64_t>size * 31 + <uint64_t>tag) * MIX_1
    while size >= 8:
        found = (found ^ load(text)) * MIX_1
        found ^= found >> 32
        text += 8
        size -= 8
    if size > 0:
        found = (found ^ first_bytes(text, size)) * MIX_1
        found ^= found >> 32
    found *= MIX_2
    return found ^ (found >> 29)


cdef inline uint64_t turned(uint64_t word, int count) noexcept nogil:
    """Rotate to the left."""
    return (word << count) | (word >> (64 - count))


cdef inline void sip_round(uint64_t* v) noexcept nogil:
    v[0] += v[1]
    v[2] += v[3]
    v[1] = turned(v[1], 13) ^ v[0]
    v[3] = turned(v[3], 16) ^ v[2]
    v[0] = turned(v[0], 32)
    v[2] += v[1]
    v[0] += v[3]
    v[1] = turned(v[1], 17) ^ v[2]
    v[3] = turned(v[3], 21) ^ v[0]
    v[2] = turned(v[2], 32)


cdef uint64_t secretly_hashed(const uint64_t* secret, const uint8_t* text, int64_t size, int64_t tag) noexcept nogil:
    """Hash as SipHash-1-3 does, then the tag and the size. Up to 7 bytes behind are looked at."""
    cdef uint64_t[4] v
    cdef uint64_t word
    cdef int64_t left = size
    v[0] = secret[0] ^ SIP_0
    v[1] = secret[1] ^ SIP_1
    v[2] = secret[0] ^ SIP_2
    v[3] = secret[1] ^ SIP_3
    while left > 0:
        word = load(text) if left >= 8 else first_bytes(text, left)
        v[3] ^= word
        sip_round(v)
        v[0] ^= word
        text += 8
        left -= 8
    word = (<uint64_t>size << 8) | <uint64_t>tag
    v[3] ^= word
    sip_round(v)
    v[0] ^= word
    v[2] ^= 0xFF
    sip_round(v)
    sip_round(v)
    sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


cdef int texts_begin(Texts* texts, const uint8_t* secret) noexcept nogil:
    memset(texts, 0, sizeof(Texts))
    memcpy(texts.secret, secret, sizeof(texts.secret))
    return texts_widen(texts)


cdef inline uint64_t hash_in(const Texts* texts, const uint8_t* text, int64_t size, int64_t tag) noexcept nogil:
    """Hash a text as this table does."""
    if texts.is_secret:
        return secretly_hashed(texts.secret, text, size, tag)
    return hashed(text, size, tag)


cdef inline uint64_t free_slot(const Texts* texts, uint64_t of_hash) noexcept nogil:
    """Return the first free slot for a hash."""
    cdef uint64_t slot = of_hash & <uint64_t>texts.slot_mask
    while texts.slots[slot] >= 0:
        slot = (slot + 1) & <uint64_t>texts.slot_mask
    return slot


cdef void texts_arrange(Texts* texts) noexcept nogil:
    """Put every text into its slot."""
    cdef int64_t index
    memset(texts.slots, 0xFF, <size_t>(texts.slot_mask + 1) * sizeof(int32_t))
    for index in range(texts.count):
        texts.slots[free_slot(texts, texts.texts[index].hash)] = <int32_t>index


cdef void texts_hide(Texts* texts) noexcept nogil:
    """Hash every text again, so that the file's author cannot make them collide."""
    cdef int64_t index
    cdef Text* known
    texts.is_secret = True
    for index in range(texts.count):
        known = &texts.texts[index]
        known.hash = hash_in(texts, texts.bytes + known.offset, known.size, known.tag)
    texts_arrange(texts)


cdef void texts_free(Texts* texts) noexcept nogil:
    free(texts.bytes)
    free(texts.texts)
    free(texts.slots)
    memset(texts, 0, sizeof(Texts))


cdef int texts_widen(Texts* texts) noexcept nogil:
    """Make room for twice as many texts."""
    cdef int64_t capacity = texts.capacity * 2 if texts.capacity else 64
    cdef int64_t slot_count = capacity * 2
    cdef Text* wider
    cdef int32_t* slots
    if capacity > 0x3FFFFFFF:
        return NO_MEMORY
    wider = <Text*>realloc(texts.texts, <size_t>capacity * sizeof(Text))
    if wider == NULL:
        return NO_MEMORY
    texts.texts = wider
    slots = <int32_t*>malloc(<size_t>slot_count * sizeof(int32_t))
    if slots == NULL:
        return NO_MEMORY
    free(texts.slots)
    texts.slots = slots
    texts.slot_mask = slot_count - 1
    texts.capacity = capacity
    texts_arrange(texts)
    return TAKEN


cdef int64_t code_of(Texts* texts, const uint8_t* text, int64_t size, int64_t tag) noexcept nogil:
    """Return the text's code, a new one where it was not met before; -1 without memory.

    Up to 7 bytes behind the text are looked at.
    """
    cdef uint64_t found = hash_in(texts, text, size, tag)
    cdef uint64_t slot = found & <uint64_t>texts.slot_mask
    cdef int32_t index
    cdef int chain = 0
    cdef Text* known
    cdef int64_t room
    cdef uint8_t* wider
    while texts.slots[slot] >= 0:
        index = texts.slots[slot]
        known = &texts.texts[index]
        if known.hash == found and known.size == size and known.tag == tag:
            if is_same(texts.bytes + known.offset, text, size):
                return index
        slot = (slot + 1) & <uint64_t>texts.slot_mask
        chain += 1
    if chain > LONGEST_CHAIN and not texts.is_secret:
        texts_hide(texts)
        found = hash_in(texts, text, size, tag)
        slot = free_slot(texts, found)
    if texts.count >= texts.capacity:
        if texts_widen(texts) != TAKEN:
            return -1
        slot = free_slot(texts, found)
    if texts.used + size + 8 > texts.room:  # 8 more, to look at
        room = (texts.used + size) * 2 + 256
        wider = <uint8_t*>realloc(texts.bytes, <size_t>room)
        if wider == NULL:
            return -1
        texts.bytes = wider
        texts.room = room
    memcpy(texts.bytes + texts.used, text, <size_t>size)
    known = &texts.texts[texts.count]
    known.hash = found
    known.offset = texts.used
    known.size = size
    known.tag = tag
    texts.used += size
    texts.slots[slot] = <int32_t>texts.count
    texts.count += 1
    return texts.count - 1


cdef inline bint is_text(const Texts* texts, int64_t code, const uint8_t* text, int64_t size) noexcept nogil:
    """Tell whether a text is the one with this code."""
    return texts.texts[code].size == size and is_same(texts.bytes + texts.texts[code].offset, text, size)


# --- JSON ------------------------------------------------------------------------------------------

cdef inline uint64_t is_byte(uint64_t word, uint64_t byte) noexcept nogil:
    """Return the high bit of each byte of the word that is this one."""
    cdef uint64_t other = word ^ (ONES * byte)
    return ~(((other & LOW_BITS) + LOW_BITS) | other) & HIGH


cdef const uint8_t* behind_any_space(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Step over space, tabs and the ends of lines."""
    cdef uint64_t word, found
    while p < end:
        word = load(p)
        found = ~(is_byte(word, 32) | is_byte(word, 10) | is_byte(word, 13) | is_byte(word, 9)) & HIGH
        if found:
            return p + (lowest_bit(found) >> 3)
        p += 8
    return p


cdef inline const uint8_t* behind_space(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Do the same, fast for no space, one blank, and the end of a line with up to 6 blanks."""
    cdef uint64_t word, found
    cdef int size
    if p[0] > 32:
        return p
    if p[0] == 32 and p[1] > 32:
        return p + 1
    word = load(p) ^ LINE_AND_BLANKS
    if word & 0xFF == 0:
        found = word & ~<uint64_t>0xFF
        if found:
            size = lowest_bit(found) >> 3
            if p[size] > 32:
                return p + size
    return behind_any_space(p, end)


cdef inline bint is_hex(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57 or 97 <= byte <= 102 or 65 <= byte <= 70


cdef inline int behind_text(const uint8_t* p, const uint8_t* end, const uint8_t** after, bint* has_escape) noexcept nogil:
    """Find the closing quote; `p` stands behind the opening one. `after` becomes its place."""
    cdef uint64_t word, quotes, slashes, found
    has_escape[0] = False
    while p < end:
        word = load(p)
        quotes = word ^ (ONES * 34)
        slashes = word ^ (ONES * 92)
        found = (((quotes - ONES) & ~quotes) | ((slashes - ONES) & ~slashes)) & HIGH
        if not found:
            p += 8
            continue
        p += lowest_bit(found) >> 3
        if p >= end:
            return STARVED
        if p[0] == 34:
            after[0] = p
            return TAKEN
        has_escape[0] = True
        if p[1] == 117:
            if not (is_hex(p[2]) and is_hex(p[3]) and is_hex(p[4]) and is_hex(p[5])):
                return ODD if p + 6 < end else STARVED
            p += 6
        elif (
            p[1] == 34 or p[1] == 92 or p[1] == 47 or p[1] == 110 or p[1] == 116
            or p[1] == 114 or p[1] == 98 or p[1] == 102
        ):
            p += 2
        else:
            return ODD if p + 1 < end else STARVED
    return STARVED


cdef inline bint ends_number(uint8_t byte) noexcept nogil:
    """Tell whether a byte can stand behind a number."""
    return byte == 44 or byte == 125 or byte == 93 or byte == 32 or byte == 10 or byte == 13 or byte == 9


cdef int behind_number(const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
    """Check any number by JSON's grammar."""
    cdef const uint8_t* start = p
    cdef const uint8_t* digits
    if p < end and p[0] == 45:
        p += 1
    digits = p
    while p < end and 48 <= p[0] <= 57:
        p += 1
    if p < end and (p == digits or (digits[0] == 48 and p > digits + 1)):
        return ODD
    if p < end and p[0] == 46:
        p += 1
        digits = p
        while p < end and 48 <= p[0] <= 57:
            p += 1
        if p < end and p == digits:
            return ODD
    if p < end and (p[0] == 101 or p[0] == 69):
        p += 1
        if p < end and (p[0] == 43 or p[0] == 45):
            p += 1
        digits = p
        while p < end and 48 <= p[0] <= 57:
            p += 1
        if p < end and p == digits:
            return ODD
    if p >= end:
        return STARVED
    if p - start > 300 or not ends_number(p[0]):
        return ODD
    after[0] = p
    return TAKEN


cdef inline int behind_word(const uint8_t* p, const uint8_t* end, const uint8_t** after, int* kind) noexcept nogil:
    """Check `true`, `false` or `null`."""
    cdef int size
    if memcmp(p, b"true", 4) == 0:
        kind[0] = YES
        size = 4
    elif memcmp(p, b"null", 4) == 0:
        kind[0] = NOTHING
        size = 4
    elif memcmp(p, b"false", 5) == 0:
        kind[0] = NO
        size = 5
    else:
        return ODD if p + 8 < end else STARVED
    if p + size >= end:
        return STARVED
    after[0] = p + size
    return TAKEN


cdef int behind_container(const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
    """Check an object or list by JSON's grammar, and find its end."""
    cdef uint64_t is_object = 0  # one bit a level, the innermost lowest
    cdef int depth = 0
    cdef int status, kind
    cdef bint has_escape
    while True:
        # a value is expected at p
        p = behind_space(p, end)
        if p >= end:
            return STARVED
        if p[0] == 123 or p[0] == 91:
            if depth == DEEPEST:
                return ODD
            is_object = (is_object << 1) | (p[0] == 123)
            depth += 1
            p = behind_space(p + 1, end)
            if p >= end:
                return STARVED
            if p[0] == 125 or p[0] == 93:
                pass  # empty: closed below
            elif is_object & 1:
                status = behind_key(p, end, &p)
                if status != TAKEN:
                    return status
                continue
            else:
                continue
        else:
            if p[0] == 34:
                status = behind_text(p + 1, end, &p, &has_escape)
                p += status == TAKEN
            elif p[0] == 45 or 48 <= p[0] <= 57:
                status = behind_number(p, end, &p)
            else:
                status = behind_word(p, end, &p, &kind)
            if status != TAKEN:
                return status
        # behind a value, or at the end of an empty container
        while True:
            p = behind_space(p, end)
            if p >= end:
                return STARVED
            if p[0] == 44:
                p += 1
                if is_object & 1:
                    p = behind_space(p, end)
                    status = behind_key(p, end, &p)
                    if status != TAKEN:
                        return status
                break
            if p[0] != (125 if is_object & 1 else 93):
                return ODD
            p += 1
            depth -= 1
            is_object >>= 1
            if depth == 0:
                after[0] = p
                return TAKEN


cdef int behind_key(const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
    """Check a key and its colon; `after` becomes the place of the value."""
    cdef int status
    cdef bint has_escape
    if p >= end:
        return STARVED
    if p[0] != 34:
        return ODD
    status = behind_text(p + 1, end, &p, &has_escape)
    if status != TAKEN:
        return status
    p = behind_space(p + 1, end)
    if p >= end:
        return STARVED
    if p[0] != 58:
        return ODD
    after[0] = behind_space(p + 1, end)
    return TAKEN


cdef int64_t[19] POWERS
cdef int power
POWERS[0] = 1
for power in range(1, 19):
    POWERS[power] = POWERS[power - 1] * 10
cdef int64_t[4] MOST_DIGITS  # that still are less than 2**62 ns, by how many are behind the point
for power in range(4):
    MOST_DIGITS[power] = LARGEST_TIME // POWERS[3 - power]


cdef inline int digit_count(uint64_t word) noexcept nogil:
    """Return how many of the first bytes of eight are digits."""
    cdef uint64_t other = word ^ ZEROS
    cdef uint64_t found = (((other & LOW_BITS) + BEYOND_NINE) | other) & HIGH
    return lowest_bit(found) >> 3 if found else 8


cdef inline int64_t digits_of(uint64_t word, int count) noexcept nogil:
    """Return the number that the first 1 to 8 bytes are."""
    word = (word ^ ZEROS) << (64 - count * 8)
    word = (word * 10) + (word >> 8)
    return <int64_t>((((word & PAIRS) * HUNDREDS) + (((word >> 16) & PAIRS) * ONES_OF_PAIRS)) >> 32)


cdef inline int digit_run(const uint8_t* p, int64_t* value) noexcept nogil:
    """Append the digits at `p` to a value; return how many, or 25 for more than 24. No overflow
    for 18 in all: the caller throws away what has more."""
    cdef int count, total = 0
    cdef uint64_t word
    while total < 24:
        word = load(p + total)
        count = digit_count(word)
        if count == 0:
            return total
        value[0] = <int64_t>(<uint64_t>value[0] * <uint64_t>POWERS[count] + <uint64_t>digits_of(word, count))
        total += count
        if count < 8:
            return total
    return 25


cdef inline int short_number(const uint8_t* p, const uint8_t** after, int64_t* digits, int* behind_point, bint* is_negative) noexcept nogil:
    """Read a number of at most 18 digits without an exponent; ODD for any other.

    At most 60 bytes are looked at.
    """
    cdef int64_t value = 0
    cdef int size, behind = 0
    cdef bint minus = p[0] == 45
    p += minus
    size = digit_run(p, &value)
    if size == 0 or size > 18 or (p[0] == 48 and size > 1):
        return ODD
    p += size
    if p[0] == 46:
        behind = digit_run(p + 1, &value)
        if behind == 0 or size + behind > 18:
            return ODD
        p += behind + 1
    digits[0] = value
    behind_point[0] = behind
    is_negative[0] = minus
    after[0] = p
    return TAKEN


cdef int64_t thousandth(int64_t digits, int behind) noexcept nogil:
    """Return a number of microseconds of more than 3 places in nanoseconds, halves to even."""
    cdef int64_t scale = POWERS[behind - 3]
    cdef int64_t whole = digits // scale
    cdef int64_t rest = digits - whole * scale
    if rest * 2 > scale or (rest * 2 == scale and whole & 1):
        whole += 1
    return whole


cdef inline int read_time(const uint8_t* p, const uint8_t** after, int64_t* time_ns) noexcept nogil:
    """Read microseconds as nanoseconds; ODD for what is no short number, or beyond 2**62 ns."""
    cdef int64_t digits = 0
    cdef int behind = 0
    cdef bint is_negative = False
    if short_number(p, after, &digits, &behind, &is_negative) != TAKEN:
        return ODD
    if behind <= 3:
        if digits > MOST_DIGITS[behind]:
            return ODD
        digits *= POWERS[3 - behind]
    else:
        digits = thousandth(digits, behind)
    time_ns[0] = -digits if is_negative else digits
    return TAKEN


cdef inline int whole_field(const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
    """Read a field's whole number, which stands for its own text: not -0, not too long."""
    cdef int64_t digits
    cdef inline int behind
    cdef bint is_negative
    cdef int status = ODD
    if p[0] == 45 or 48 <= p[0] <= 57:
        status = short_number(p, after, &digits, &behind, &is_negative)
        if status == TAKEN and (behind or (is_negative and digits == 0)):
            status = ODD
        if status == TAKEN and not ends_number(after[0][0]):
            status = ODD
    if status == ODD and p + 24 >= end:
        return STARVED
    return status

cdef int time_field(const uint8_t* p, const uint8_t* end, const uint8_t** after, int64_t* time_ns, bint* is_text) noexcept nogil:
    cdef int status = ODD
    cdef int kind
    if p[0] == 34:
        if 48 <= p[1] <= 57:  # what Python also reads, such as " 5", is left to it
            status = read_time(p + 1, after, time_ns)
            if status == TAKEN and after[0][0] != 34:
                status = ODD
            after[0] += 1
            is_text[0] = True
    elif p[0] == 45 or 48 <= p[0] <= 57:
        status = read_time(p, after, time_ns)
        if status == TAKEN and not ends_number(after[0][0]):
            status = ODD
    elif p[0] == 110:
        return behind_word(p, end, after, &kind)
    if status == ODD and p + 48 >= end:
        return STARVED
    return status


# --- columns ---------------------------------------------------------------------------------------

cdef struct Argument:
    int32_t* rows
    uint8_t* kinds    # NULL while all are of `first_kind`
    int32_t* narrow   # the values, while 32 bits hold all of them
    int64_t* wide     # the values, since they do not
    int64_t count
    int64_t capacity
    uint64_t met_in  # the last attempt that had this key
    int32_t next_key  # the key that followed it last
    int32_t last_kind
    int64_t last_code
    int32_t first_kind


cdef struct Field:
    const uint8_t* text
    int64_t size
    int32_t tag  # 0 plain, 1 escaped, -1 absent


cdef inline int argument_number(const uint8_t* p, const uint8_t* end, const uint8_t** after, int* kind, int64_t* value) noexcept nogil:
    """Read a number as WHOLE or DECIMAL; check any other, whose text is then to be kept."""
    cdef int64_t digits = 0
    cdef int behind = 0
    cdef bint is_negative = False
    if short_number(p, after, &digits, &behind, &is_negative) == TAKEN and ends_number(after[0][0]):
        if not behind:
            kind[0] = WHOLE
            value[0] = -digits if is_negative else digits
            return TAKEN
        if behind <= 15 and digits < POWERS[15] and not (is_negative and digits == 0):
            kind[0] = DECIMAL
            value[0] = (-digits if is_negative else digits) * 16 + behind
            return TAKEN
    kind[0] = NUMBER
    return behind_number(p, end, after)


cdef inline bint begins_document(const uint8_t* key, int size) noexcept nogil:
    """Tell whether a key is one of a whole document's: another writer's, not an event's."""
    return (size == 11 and memcmp(key, b"traceEvents", 11) == 0) or (
        size == 13 and memcmp(key, b"schemaVersion", 13) == 0
    )


cdef inline int known_key(uint64_t word, int* size) noexcept nogil:
    """Return which field of an event is named by the key whose first eight bytes these are."""
    cdef uint32_t three = <uint32_t>word & 0xFFFFFF
    cdef uint32_t four = <uint32_t>word
    size[0] = 3
    if four == 0x22646970:  # pid"
        return PID
    if four == 0x22646974:  # tid"
        return TID
    if four == 0x22746163:  # cat"
        return CAT
    if four == 0x22727564:  # dur"
        return DUR
    size[0] = 2
    if three == 0x227374:  # ts"
        return TS
    if three == 0x226870:  # ph"
        return PH
    if three == 0x226469:  # id"
        return ID
    size[0] = 4
    if (word >> 32) & 0xFF == 34:
        if four == 0x656D616E:  # name"
            return NAME
        if four == 0x73677261:  # args"
            return ARGS
    return OTHER


cdef bytes PADDED = bytes(8)


cdef class Scanner:
    """Takes events from bytes, or one at a time from Python; `column` and the rest give them back."""

    cdef Texts strings
    cdef Texts keys
    cdef Texts texts
    cdef Argument* arguments
    cdef int64_t argument_capacity
    cdef int32_t* codes[6]
    cdef int64_t* starts_ns
    cdef int64_t* durations_ns
    cdef int64_t* offsets
    cdef int64_t count
    cdef int64_t capacity
    cdef uint64_t attempt
    cdef int32_t[STAGED] touched  # the arguments of the event that is being read
    cdef int touched_count
    cdef int64_t[CODES] last_codes
    cdef int32_t key_before  # that stood before; -1 and less: none, in an event of some category
    cdef int32_t[CATEGORIES] first_keys  # the first key last time, by category
    cdef bint starved
    cdef int64_t limit
    cdef int64_t text_times
    cdef int64_t missing_commas
    cdef int64_t extra_commas
    cdef int64_t extra_comma_places
    cdef int64_t[3] text_time_examples
    cdef int64_t[3] missing_comma_examples
    cdef int64_t[3] extra_comma_examples

    def __cinit__(self, int64_t limit=0x7FFFFFF0):
        """Take at most `limit` events in all."""
        self.limit = limit
        self.key_before = -1
        cdef int index
        for index in range(CATEGORIES):
            self.first_keys[index] = -1
        for index in range(CODES):
            self.last_codes[index] = -1
        cdef bytes secret = os.urandom(16)
        if (
            texts_begin(&self.strings, secret) != TAKEN
            or texts_begin(&self.keys, secret) != TAKEN
            or texts_begin(&self.texts, secret) != TAKEN
        ):
            raise MemoryError

    def __dealloc__(self):
        cdef int64_t index
        for index in range(self.keys.count if self.arguments != NULL else 0):
            free(self.arguments[index].rows)
            free(self.arguments[index].kinds)
            free(self.arguments[index].narrow)
            free(self.arguments[index].wide)
        free(self.arguments)
        for index in range(CODES):
            free(self.codes[index])
        free(self.starts_ns)
        free(self.durations_ns)
        free(self.offsets)
        texts_free(&self.strings)
        texts_free(&self.keys)
        texts_free(&self.texts)

    def __len__(self):
        return self.count

    @property
    def is_starved(self):
        """Whether the last scan stopped because the data ended."""
        return self.starved

    def scan(self, data, int64_t at, int64_t offset, *, bint is_comma_due):
        """Take events from `data[at:]`; see `documents.Scanner`.

        Raises:
            MemoryError: there is none left; what was taken stays.
        """
        cdef Py_buffer view
        cdef int64_t end
        cdef int status = TAKEN
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                end = self.take_all(<const uint8_t*>view.buf, at, view.len - PADDING, offset, is_comma_due, &status)
        finally:
            PyBuffer_Release(&view)
        if status == NO_MEMORY:
            raise MemoryError
        self.starved = status == STARVED
        return end

    cdef int64_t take_all(self, const uint8_t* data, int64_t at, int64_t size, int64_t offset, bint is_comma_due, int* status) noexcept nogil:
        cdef const uint8_t* p
        cdef const uint8_t* end = data + size
        cdef const uint8_t* after = NULL
        cdef int64_t commas
        status[0] = STARVED
        while at < size:
            p = data + at
            commas = 0
            while p < end and (p[0] == 44 or p[0] == 32 or p[0] == 10 or p[0] == 13 or p[0] == 9):
                commas += p[0] == 44
                p += 1
            if p >= end:
                return at
            if p[0] != 123 or self.count >= self.limit:
                status[0] = ODD
                return at
            status[0] = self.take(p, end, offset + (p - data), &after)
            if status[0] != TAKEN:
                return at
            if commas != is_comma_due:
                self.note_commas(commas, is_comma_due, offset + at, offset + (p - data))
            is_comma_due = True
            at = after - data
            status[0] = STARVED
        return at

    cdef void note_commas(self, int64_t commas, bint is_due, int64_t before, int64_t event) noexcept nogil:
        if commas < is_due:
            if self.missing_commas < EXAMPLES:
                self.missing_comma_examples[self.missing_commas] = event
            self.missing_commas += 1
            return
        if self.extra_comma_places < EXAMPLES:
            self.extra_comma_examples[self.extra_comma_places] = before
        self.extra_comma_places += 1
        self.extra_commas += commas - is_due

    cdef inline int take(self, const uint8_t* p, const uint8_t* end, int64_t offset, const uint8_t** after) noexcept nogil:
        """Take one event; `p` stands at its brace. Nothing is kept of one that is not TAKEN."""
        cdef int status
        self.attempt += 1
        self.touched_count = 0
        status = self.take_fields(p, end, offset, after)
        if status != TAKEN:
            self.forget()
        return status

    cdef void forget(self) noexcept nogil:
        """Take back the arguments of an event that is not taken."""
        cdef int index
        for index in range(self.touched_count):
            self.arguments[self.touched[index]].count -= 1

    cdef int take_fields(self, const uint8_t* p, const uint8_t* end, int64_t offset, const uint8_t** after) noexcept nogil:
        cdef Field[CODES] fields
        cdef int64_t[2] times
        cdef int field, status, kind, size
        cdef bint has_escape = False
        cdef bint is_text_time = False
        cdef uint32_t met = 0
        cdef const uint8_t* key
        cdef const uint8_t* next_place = NULL
        times[0] = NO_TIME
        times[1] = NO_TIME
        for field in range(CODES):
            fields[field].tag = -1
        if self.count >= self.capacity and self.widen() != TAKEN:
            return NO_MEMORY
        p = behind_space(p + 1, end)
        if p < end and p[0] == 125:
            after[0] = p + 1
            return self.keep(fields, times, offset)
        while True:
            if p >= end:
                return STARVED
            if p[0] != 34:
                return ODD
            key = p + 1
            field = known_key(load(key), &size)
            if field == OTHER:
                status = behind_text(key, end, &next_place, &has_escape)
                if status != TAKEN:
                    return status
                if has_escape:
                    return ODD
                size = <int>(next_place - key)
                if size <= 0 or begins_document(key, size):
                    return ODD
            elif met & (<uint32_t>1 << field):
                return ODD
            else:
                met |= <uint32_t>1 << field
            p = key + size + 1
            if p[0] != 58:
                p = behind_space(p, end)
                if p >= end:
                    return STARVED
                if p[0] != 58:
                    return ODD
            p = behind_space(p + 1, end)
            if p >= end:
                return STARVED
            if field < CODES:
                if p[0] == 34:
                    status = behind_text(p + 1, end, &next_place, &has_escape)
                    if status != TAKEN:
                        return status
                    fields[field].text = p + 1
                    fields[field].size = next_place - p - 1
                    fields[field].tag = has_escape
                    next_place += 1
                elif p[0] == 110:
                    status = behind_word(p, end, &next_place, &kind)
                    if status != TAKEN:
                        return status
                else:
                    status = whole_field(p, end, &next_place)
                    if status != TAKEN:
                        return status
                    fields[field].text = p
                    fields[field].size = next_place - p
                    fields[field].tag = 0
            elif field == TS or field == DUR:
                status = time_field(p, end, &next_place, &times[field - TS], &is_text_time)
                if status != TAKEN:
                    return status
            elif field == ARGS:
                if p[0] != 123:
                    return ODD
                self.key_before = -1
                if fields[CAT].tag >= 0:
                    self.key_before -= <int32_t>((load(fields[CAT].text) * MIX_1) >> 58)
                status = self.take_arguments(p + 1, end, &next_place)
                if status != TAKEN:
                    return status
            else:
                status = self.take_argument(self.key_code(key, size, 0), p, end, &next_place)
                if status != TAKEN:
                    return status
            p = behind_space(next_place, end)
            if p >= end:
                return STARVED
            if p[0] == 44:
                p = behind_space(p + 1, end)
                continue
            if p[0] == 125:
                p += 1
                break
            return ODD
        if p > end:
            return STARVED
        after[0] = p
        if is_text_time:
            self.note_text_time(offset)
        return self.keep(fields, times, offset)

    cdef void note_text_time(self, int64_t offset) noexcept nogil:
        if self.text_times < EXAMPLES:
            self.text_time_examples[self.text_times] = offset
        self.text_times += 1

    cdef int take_arguments(self, const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
        """Take what stands in `args`; `p` stands behind its brace."""
        cdef const uint8_t* key
        cdef const uint8_t* next_place = NULL
        cdef bint has_escape = False
        cdef int status
        cdef int64_t code
        p = behind_space(p, end)
        if p < end and p[0] == 125:
            after[0] = p + 1
            return TAKEN
        while True:
            if p >= end:
                return STARVED
            if p[0] != 34:
                return ODD
            key = p + 1
            code = self.next_key()[0]
            p = self.behind_known_key(code, key, end)
            if p == NULL:
                status = behind_text(key, end, &next_place, &has_escape)
                if status != TAKEN:
                    return status
                if has_escape:
                    return ODD
                p = next_place
                code = self.key_code(key, p - key, 0)
            next_place = p + 1
            if next_place[0] != 58:
                next_place = behind_space(next_place, end)
                if next_place >= end:
                    return STARVED
                if next_place[0] != 58:
                    return ODD
            next_place = behind_space(next_place + 1, end)
            if next_place >= end:
                return STARVED
            status = self.take_argument(code, next_place, end, &next_place)
            if status != TAKEN:
                return status
            p = behind_space(next_place, end)
            if p >= end:
                return STARVED
            if p[0] == 44:
                p = behind_space(p + 1, end)
                continue
            if p[0] == 125:
                after[0] = p + 1
                return TAKEN
            return ODD

    cdef inline int32_t* next_key(self) noexcept nogil:
        """Return where the key is noted that came next last time."""
        if self.key_before >= 0:
            return &self.arguments[self.key_before].next_key
        return &self.first_keys[-1 - self.key_before]

    cdef inline const uint8_t* behind_known_key(self, int64_t code, const uint8_t* key, const uint8_t* end) noexcept nogil:
        """Return the closing quote of a key if it is the one with this code, else NULL."""
        cdef const Text* text
        if code < 0:
            return NULL
        text = &self.keys.texts[code]
        if text.tag != 0 or key + text.size >= end or key[text.size] != 34:
            return NULL
        if not is_same(key, self.keys.bytes + text.offset, text.size):
            return NULL
        return key + text.size

    cdef int64_t key_code(self, const uint8_t* key, int64_t size, int64_t tag) noexcept nogil:
        """Return the key's code, with a column for it; -1 without memory. Tag 1: with escapes."""
        cdef int64_t code = self.next_key()[0]
        if code >= 0 and is_text(&self.keys, code, key, size):
            return code
        if self.keys.count >= self.argument_capacity and self.widen_arguments() != TAKEN:
            return -1
        code = code_of(&self.keys, key, size, tag)
        if code >= 0:
            self.next_key()[0] = <int32_t>code
        return code

    cdef int widen_arguments(self) noexcept nogil:
        cdef int64_t capacity = self.argument_capacity * 2 if self.argument_capacity else 64
        cdef int64_t index
        if resized(<void**>&self.arguments, capacity * <int64_t>sizeof(Argument)) != TAKEN:
            return NO_MEMORY
        memset(&self.arguments[self.argument_capacity], 0, <size_t>(capacity - self.argument_capacity) * sizeof(Argument))
        for index in range(self.argument_capacity, capacity):
            self.arguments[index].next_key = -1
            self.arguments[index].last_code = -1
        self.argument_capacity = capacity
        return TAKEN

    cdef inline int take_argument(self, int64_t code, const uint8_t* p, const uint8_t* end, const uint8_t** after) noexcept nogil:
        """Append the value at `p` of the argument whose key has a code; `forget` takes it back."""
        cdef int64_t value = -1
        cdef int status
        cdef int kind = WHOLE
        cdef bint has_escape = False
        cdef Argument* argument
        cdef const uint8_t* known_end
        if code < 0:
            return NO_MEMORY
        argument = &self.arguments[code]
        if self.touched_count >= STAGED or argument.met_in == self.attempt:
            return ODD
        argument.met_in = self.attempt
        self.key_before = <int32_t>code
        if p[0] == 45 or 48 <= p[0] <= 57:
            status = argument_number(p, end, after, &kind, &value)
            if status != TAKEN:
                return status
            if kind == NUMBER:
                value = code_of(&self.texts, p, after[0] - p, kind)
        elif p[0] == 34:
            status = behind_text(p + 1, end, after, &has_escape)
            if status != TAKEN:
                return status
            kind = ESCAPED if has_escape else PLAIN
            value = self.last_or_code(argument, kind, p + 1, after[0] - p - 1)
            after[0] += 1
        elif p[0] == 91 or p[0] == 123:
            kind = CONTAINER
            known_end = self.known_container(argument, p, end)
            if known_end != NULL:
                value = argument.last_code
                after[0] = known_end
            else:
                status = behind_container(p, end, after)
                if status != TAKEN:
                    return status
                value = code_of(&self.texts, p, after[0] - p, kind)
        else:
            status = behind_word(p, end, after, &kind)
            if status != TAKEN or kind == NOTHING:
                return status
            value = 0
        if kind >= PLAIN and kind <= NUMBER:
            if value < 0:
                return NO_MEMORY
            argument.last_code = value
            argument.last_kind = kind
        if argument_append(argument, self.count, kind, value) != TAKEN:
            return NO_MEMORY
        self.touched[self.touched_count] = <int32_t>code
        self.touched_count += 1
        return TAKEN

    cdef inline int64_t last_or_code(self, const Argument* argument, int kind, const uint8_t* text, int64_t size) noexcept nogil:
        """Return the code of a text, which often is this argument's last one."""
        if argument.last_kind == kind and argument.last_code >= 0 and is_text(&self.texts, argument.last_code, text, size):
            return argument.last_code
        return code_of(&self.texts, text, size, kind)

    cdef inline const uint8_t* known_container(self, const Argument* argument, const uint8_t* p, const uint8_t* end) noexcept nogil:
        """Return where the container ends if it is the same as this key's last one: it was checked."""
        cdef const Text* text
        if argument.last_kind != CONTAINER or argument.last_code < 0:
            return NULL
        text = &self.texts.texts[argument.last_code]
        if p + text.size >= end or not is_same(p, self.texts.bytes + text.offset, text.size):
            return NULL
        return p + text.size

    cdef inline int keep(self, const Field* fields, const int64_t* times, int64_t offset) noexcept nogil:
        """Append the event whose arguments were taken; there is room for it."""
        cdef int index
        cdef int64_t code
        cdef const Field* field
        for index in range(CODES):
            field = &fields[index]
            code = -1
            if field.tag >= 0:
                code = self.last_codes[index]
                if code < 0 or field.tag != self.strings.texts[code].tag or not is_text(&self.strings, code, field.text, field.size):
                    code = code_of(&self.strings, field.text, field.size, field.tag)
                    if code < 0:
                        return NO_MEMORY
                    self.last_codes[index] = code
            self.codes[index][self.count] = <int32_t>code
        self.starts_ns[self.count] = times[0]
        self.durations_ns[self.count] = times[1]
        self.offsets[self.count] = offset
        self.count += 1
        return TAKEN

    cdef int widen(self) noexcept nogil:
        """Make room for more events."""
        cdef int64_t capacity = self.capacity * 2 + 4096
        cdef int index
        for index in range(CODES):
            if resized(<void**>&self.codes[index], capacity * 4) != TAKEN:
                return NO_MEMORY
        if (
            resized(<void**>&self.starts_ns, capacity * 8) != TAKEN
            or resized(<void**>&self.durations_ns, capacity * 8) != TAKEN
            or resized(<void**>&self.offsets, capacity * 8) != TAKEN
        ):
            return NO_MEMORY
        self.capacity = capacity
        return TAKEN

    # --- one event at a time, from Python ----------------------------------------------------------

    def string_code(self, bytes text):
        """Return the code of a field's text, as it is."""
        cdef bytes padded = text + PADDED
        cdef const uint8_t* start = padded
        cdef int64_t code = code_of(&self.strings, start, len(text), 0)
        if code < 0:
            raise MemoryError
        return code

    def text_code(self, bytes text, int kind):
        """Return the code of an argument's text of some kind."""
        cdef bytes padded = text + PADDED
        cdef const uint8_t* start = padded
        cdef int64_t code = code_of(&self.texts, start, len(text), kind)
        if code < 0:
            raise MemoryError
        return code

    def add_event(self, codes, int64_t start_ns, int64_t duration_ns, int64_t offset):
        """Append an event whose texts are coded."""
        cdef int index
        if self.count >= self.capacity and self.widen() != TAKEN:
            raise MemoryError
        for index in range(CODES):
            self.codes[index][self.count] = codes[index]
        self.starts_ns[self.count] = start_ns
        self.durations_ns[self.count] = duration_ns
        self.offsets[self.count] = offset
        self.count += 1

    def add_argument(self, bytes key, int kind, int64_t value):
        """Append an argument of the event added last."""
        cdef bytes padded = key + PADDED
        cdef const uint8_t* start = padded
        cdef int64_t code
        self.key_before = -1
        code = self.key_code(start, len(key), b'"' in key or b"\\" in key)
        if code < 0:
            raise MemoryError
        if argument_append(&self.arguments[code], self.count - 1, kind, value) != TAKEN:
            raise MemoryError

    # --- what was taken ----------------------------------------------------------------------------

    def take_columns(self):
        """Hand over the columns: six of int32 codes, then starts, durations and offsets in int64."""
        cdef list columns = []
        cdef int index
        for index in range(CODES):
            columns.append(handed_over(self.codes[index], self.count * 4))
            self.codes[index] = NULL
        columns.append(handed_over(self.starts_ns, self.count * 8))
        columns.append(handed_over(self.durations_ns, self.count * 8))
        columns.append(handed_over(self.offsets, self.count * 8))
        self.starts_ns = self.durations_ns = self.offsets = NULL
        self.capacity = self.count = 0
        return columns

    def take_arguments_of(self, int64_t code):
        """Hand over one argument's rows (int32), kinds (uint8; one where it is that of all), values
        (int32, or int64 where that is not enough), and how many bytes a value has.
        """
        cdef Argument* argument
        if not 0 <= code < self.keys.count:
            raise IndexError(code)
        argument = &self.arguments[code]
        rows = handed_over(argument.rows, argument.count * 4)
        if argument.kinds != NULL:
            kinds = handed_over(argument.kinds, argument.count)
        else:
            kinds = memoryview(bytes([argument.first_kind]))
        if argument.wide != NULL:
            values = handed_over(argument.wide, argument.count * 8)
        else:
            values = handed_over(argument.narrow, argument.count * 4)
        taken = (rows, kinds, values, 8 if argument.wide != NULL else 4)
        argument.rows = NULL
        argument.kinds = NULL
        argument.narrow = NULL
        argument.wide = NULL
        argument.count = argument.capacity = 0
        return taken

    def key_names(self):
        """Return the arguments' keys by code."""
        cdef int64_t code
        cdef const Text* text
        names = []
        for code in range(self.keys.count):
            text = &self.keys.texts[code]
            names.append((<const char*>self.keys.bytes + text.offset)[:text.size])
        return names

    def take_strings(self):
        """Hand over the fields' texts: all bytes, where each ends, and which hold escapes."""
        cdef int64_t code
        escaped = [code for code in range(self.strings.count) if self.strings.texts[code].tag]
        return *texts_taken(&self.strings), escaped

    def take_texts(self):
        """Hand over the arguments' texts: all bytes, and where each ends (int64), by code."""
        return texts_taken(&self.texts)

    def notes(self):
        """Return how often separators and times were odd, each with the offsets of the first."""
        return {
            "text-times": (self.text_times, [self.text_time_examples[i] for i in range(min(self.text_times, EXAMPLES))]),
            "missing-comma": (self.missing_commas, [self.missing_comma_examples[i] for i in range(min(self.missing_commas, EXAMPLES))]),
            "extra-comma": (self.extra_commas, [self.extra_comma_examples[i] for i in range(min(self.extra_comma_places, EXAMPLES))]),
        }


cdef tuple texts_taken(Texts* texts):
    cdef int64_t index
    cdef int64_t count = texts.count
    cdef int64_t used = texts.used
    cdef int64_t* ends = <int64_t*>malloc(<size_t>(count + 1) * 8)
    cdef void* text = texts.bytes
    if ends == NULL:
        raise MemoryError
    for index in range(count):
        ends[index] = texts.texts[index].offset + texts.texts[index].size
    texts.bytes = NULL
    texts_free(texts)
    return handed_over(text, used), handed_over(ends, count * 8)


cdef int resized(void** array, int64_t size) noexcept nogil:
    cdef void* wider = realloc(array[0], <size_t>size)
    if wider == NULL:
        return NO_MEMORY
    array[0] = wider
    return TAKEN


cdef inline int argument_append(Argument* argument, int64_t row, int kind, int64_t value) noexcept nogil:
    if argument.count >= argument.capacity and argument_widen(argument) != TAKEN:
        return NO_MEMORY
    if argument.count == 0 and argument.kinds == NULL:
        argument.first_kind = kind
    if kind != argument.first_kind and argument.kinds == NULL and argument_mix(argument) != TAKEN:
        return NO_MEMORY
    if value != <int32_t>value and argument.wide == NULL and argument_broaden(argument) != TAKEN:
        return NO_MEMORY
    argument.rows[argument.count] = <int32_t>row
    if argument.kinds != NULL:
        argument.kinds[argument.count] = <uint8_t>kind
    if argument.wide != NULL:
        argument.wide[argument.count] = value
    else:
        argument.narrow[argument.count] = <int32_t>value
    argument.count += 1
    return TAKEN


cdef int argument_widen(Argument* argument) noexcept nogil:
    """Make room for more values."""
    cdef int64_t capacity = argument.capacity * 2 + 64
    if resized(<void**>&argument.rows, capacity * 4) != TAKEN:
        return NO_MEMORY
    if argument.kinds != NULL and resized(<void**>&argument.kinds, capacity) != TAKEN:
        return NO_MEMORY
    if argument.wide != NULL:
        if resized(<void**>&argument.wide, capacity * 8) != TAKEN:
            return NO_MEMORY
    elif resized(<void**>&argument.narrow, capacity * 4) != TAKEN:
        return NO_MEMORY
    argument.capacity = capacity
    return TAKEN


cdef int argument_mix(Argument* argument) noexcept nogil:
    """From here on, note the kind of each value."""
    argument.kinds = <uint8_t*>malloc(<size_t>argument.capacity)
    if argument.kinds == NULL:
        return NO_MEMORY
    memset(argument.kinds, argument.first_kind, <size_t>argument.count)
    return TAKEN


cdef int argument_broaden(Argument* argument) noexcept nogil:
    """From here on, keep values in 64 bits."""
    cdef int64_t index
    argument.wide = <int64_t*>malloc(<size_t>argument.capacity * 8)
    if argument.wide == NULL:
        return NO_MEMORY
    for index in range(argument.count):
        argument.wide[index] = argument.narrow[index]
    free(argument.narrow)
    argument.narrow = NULL
    return TAKEN
