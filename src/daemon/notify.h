/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the service manager how far we are (sd_notify's protocol) by a datagram
 * of our own to NOTIFY_SOCKET. Without that variable it does nothing.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/* state: "READY=1", "STOPPING=1\nSTATUS=draining", ... A failure is logged and
 * otherwise without consequence. Any thread. */
void notify_send(const char *state);

#endif
