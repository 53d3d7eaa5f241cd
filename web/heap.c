/* SPDX-License-Identifier: MIT */
/*
 * The page's heap, in place of the C library's, which takes 6 KB of the page. A block is sixteen
 * bytes that hold its capacity, then what the caller gets. Capacities come in classes: multiples of
 * 16 up to 1 KiB, then four to each doubling, so that at most a quarter is unused. A freed block
 * goes to the list of its class; the block that ends where the heap ends grows and goes in place,
 * as the one large array does that a reader fills.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEAD       16u
#define SMALL      1024u
#define LARGEST    0x70000000u
#define PAGE_BYTES 65536u
enum { SMALL_CLASSES = SMALL / 16, CLASSES = SMALL_CLASSES + 4 * 22 };

struct block {
    uint32_t capacity, class;
    struct block *next; /* where it is free */
    uint32_t unused;
};
_Static_assert(sizeof(struct block) == HEAD, "what follows it is aligned for any type");

extern unsigned char __heap_base;
static struct block *freed[CLASSES];
static unsigned char *end; /* of the last block; NULL: nothing was asked for yet */

/* The class of `size` and what a block of it holds. */
static uint32_t class_of(size_t size, uint32_t *capacity)
{
    uint32_t class = SMALL_CLASSES, step = SMALL / 4, least = SMALL;
    if (size <= SMALL) {
        class = size ? (uint32_t)(size - 1) / 16 : 0;
        *capacity = 16 * (class + 1);
        return class;
    }
    for (; size > 2 * least; least *= 2, step *= 2)
        class += 4;
    uint32_t part = ((uint32_t)size - least - 1) / step;
    *capacity = least + step * (part + 1);
    return class + part;
}

/* Puts the end of the heap `bytes` after `from`, and asks for memory where there is too little. */
static int set_end(void *from, uint32_t bytes)
{
    uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE_BYTES;
    uintptr_t to = (uintptr_t)from + bytes;
    if (to < bytes) /* past the largest address */
        return 0;
    if (to > have &&
        __builtin_wasm_memory_grow(0, (to - have + PAGE_BYTES - 1) / PAGE_BYTES) == SIZE_MAX)
        return 0;
    end = (unsigned char *)from + bytes;
    return 1;
}

void *malloc(size_t size)
{
    uint32_t capacity, class;
    if (size > LARGEST)
        return NULL;
    class = class_of(size, &capacity);
    struct block *block = freed[class];
    if (block) {
        freed[class] = block->next;
        return block + 1;
    }
    if (!end)
        end = &__heap_base + (HEAD - (uintptr_t)&__heap_base % HEAD) % HEAD;
    block = (void *)end;
    if (!set_end(end, HEAD + capacity))
        return NULL;
    block->capacity = capacity;
    block->class = class;
    return block + 1;
}

static int is_last(const struct block *block)
{
    return (const unsigned char *)(block + 1) + block->capacity == end;
}

void free(void *pointer)
{
    if (!pointer)
        return;
    struct block *block = (struct block *)pointer - 1;
    if (is_last(block)) {
        end = (unsigned char *)block;
        return;
    }
    block->next = freed[block->class];
    freed[block->class] = block;
}

void *realloc(void *pointer, size_t size)
{
    uint32_t capacity, class;
    if (!pointer)
        return malloc(size);
    if (size > LARGEST)
        return NULL;
    struct block *block = (struct block *)pointer - 1;
    class = class_of(size, &capacity);
    if (is_last(block)) {
        if (!set_end(block + 1, capacity))
            return NULL;
        block->capacity = capacity;
        block->class = class;
        return pointer;
    }
    if (capacity <= block->capacity && capacity >= block->capacity / 2)
        return pointer;
    void *moved = malloc(size);
    if (!moved)
        return NULL;
    memcpy(moved, pointer, size < block->capacity ? size : block->capacity);
    free(pointer);
    return moved;
}

void *calloc(size_t count, size_t size)
{
    size_t bytes = count * size;
    if (size && count > LARGEST / size)
        return NULL;
    void *block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}
