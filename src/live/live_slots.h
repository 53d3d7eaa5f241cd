/* SPDX-License-Identifier: MIT */
/*
 * Collectives in flight, in a pool of fixed size. NCCL keeps handles longer than it says (a parent
 * that was stopped long ago, a record after the stop: NVIDIA/nccl#1992), so a handle is not a
 * pointer: it names a slot, the slot's generation, and what kind of event it is; one whose
 * generation has passed is ignored.
 */
#ifndef KNEE_LIVE_SLOTS_H
#define KNEE_LIVE_SLOTS_H

#include "live/live_agent.h"

enum live_handle_kind { LIVE_HANDLE_NONE, LIVE_HANDLE_CALL, LIVE_HANDLE_PART, LIVE_HANDLE_GROUP };

/* A collective that was enqueued; its event is pushed. NULL: no slot is free (counted). */
void *live_slot_open(const struct live_event *event);
/* The host has enqueued all of it. */
void live_slot_enqueued(void *handle);
/* A part of it (a channel of its kernel, an operation of the proxy) began or ended at a moment of
 * whatever clock the parts have; `gpu` says that it is the GPU's. */
void *live_slot_part_began(void *handle, unsigned channel, int64_t at_ns, bool gpu);
void live_slot_part_ended(void *part, int64_t at_ns);
/* NCCL is done with a part: its end, unless the end is already known on the parts' clock. */
void live_slot_part_stopped(void *part);

enum live_handle_kind live_handle_kind(const void *handle);
/* A launch, which collectives are grouped by. */
void *live_group_handle(void);
uint32_t live_group_of(const void *handle);
/* Collectives that found no slot. */
uint64_t live_slots_lost(void);

#endif
