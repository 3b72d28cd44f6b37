#pragma once

#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// On every rank each use of a buffer is ordered after those it depends on: data is read after its
/// writer (LS201), a buffer is overwritten or released after its readers (LS202), writers come one
/// after the other (LS203). Order comes from streams, `after` lists, host waits and promises
/// (Lamport's happened-before by vector clocks). Needs a journal with lists; without them there is
/// nothing to judge. A release is ordered as a caching allocator does it: uses on the first stream
/// of the buffer's device are safe, and all uses of host memory, which is kept until the copies
/// that use it have ended (PyTorch CachingHostAllocator). One finding per pair of statements, over
/// all ranks and buffers.
std::vector<Finding> no_race(const RunResult& run);

}  // namespace lockstep
