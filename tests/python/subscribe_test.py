#!/usr/bin/env python3
"""Kernels that become better while a client holds them."""
import queue
import unittest

from support import offline_daemon

import tuner

DIMS = {"rows": 1024, "cols": 1024}


class Subscribe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = offline_daemon(cls)

    def tune(self, rows):
        self.daemon.ctl("tune", "twice", f"rows={rows}", "cols=1024")

    def test_a_subscriber_is_told_and_its_kernel_is_the_better_one(self):
        upgrades = queue.Queue()
        with tuner.Client(self.daemon.socket) as client, tuner.Client(self.daemon.socket) as quiet:
            client.subscribe(upgrades.put)
            kernel, kept = client.get("twice", DIMS), quiet.get("twice", DIMS)
            before = kernel.facts
            self.assertNotEqual(before.quality, "exact")
            self.tune(1024)
            facts = upgrades.get(timeout=60)
            self.assertEqual((facts.problem, facts.quality), (before.problem, "exact"))
            self.assertGreater(facts.generation, before.generation)
            self.assertEqual(kernel.facts.variant, facts.variant)
            self.assertEqual(kernel.quality, "exact")
            self.assertEqual(kept.facts.generation, before.generation)  # who does not subscribe keeps what it has

    def test_a_client_may_subscribe_without_a_callback_and_change_it(self):
        upgrades = queue.Queue()
        with tuner.Client(self.daemon.socket) as client:
            client.subscribe()
            client.subscribe(upgrades.put)
            client.get("twice", {**DIMS, "rows": 2048})
            self.tune(2048)
            self.assertEqual(upgrades.get(timeout=60).quality, "exact")

    def test_a_client_may_go_within_its_own_callback(self):
        seen = queue.Queue()
        holder = [tuner.Client(self.daemon.socket)]
        close = holder[0].close

        def drop(facts):
            holder.clear()
            close()
            seen.put(facts)

        holder[0].subscribe(drop)
        kernel = holder[0].get("twice", {**DIMS, "rows": 4096})
        self.tune(4096)
        self.assertEqual(seen.get(timeout=60).problem, kernel.problem)


if __name__ == "__main__":
    unittest.main()
