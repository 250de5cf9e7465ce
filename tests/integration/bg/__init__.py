# SPDX-License-Identifier: BSD-2-Clause
"""What the integration tests stand on: servers, a RESP client, deadlines."""
