#ifndef KM_PUBLIC_H
#define KM_PUBLIC_H

/* The types and routines that others see, declared as they are linked here: the compiler compares
   them with the core's own headers. */

#define KM_CORE
#include <kernmean.h>

#endif
