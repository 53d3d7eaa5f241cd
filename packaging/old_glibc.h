/* SPDX-License-Identifier: MIT */
/* Included before every source of the library that goes into the wheel: the names that these five
 * functions have had since the first glibc of the processor. glibc 2.29 gave them new ones, which
 * differ in errno alone; with them the wheel would not load on CentOS 7, Ubuntu 18.04 and the like.
 * tools/wheel.py reads the symbols and names the oldest glibc in the wheel's tag. */
#if defined __x86_64__
#define FIRST "GLIBC_2.2.5"
#elif defined __aarch64__
#define FIRST "GLIBC_2.17"
#endif
#ifdef FIRST
__asm__(".symver exp,exp@" FIRST);
__asm__(".symver exp2,exp2@" FIRST);
__asm__(".symver log,log@" FIRST);
__asm__(".symver log2,log2@" FIRST);
__asm__(".symver pow,pow@" FIRST);
#undef FIRST
#endif
