#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "properties/diagnosis/calls.hpp"

namespace lockstep {

/// The calls of one rank, and whether it might have called more: a rank that waits forever or was
/// cut short is open, one that ended by itself is not.
struct CallSequence {
  std::span<const Call> calls;
  bool open = false;
};

enum class EditKind : uint8_t {
  only_left,  ///< a call of the left rank that the right one lacks
  only_right,
  arguments,  ///< the same call with different arguments
};

/// One step of making two sequences equal.
struct Edit {
  EditKind kind = EditKind::only_left;
  size_t left = 0;
  size_t right = 0;
  bool free = false;  ///< the other rank may have been about to call it
};

/// Who is to be blamed where both could be: negative = the left call is the odd one, positive = the
/// right one, 0 = no opinion.
using Judge = std::function<int(size_t left, size_t right)>;

struct EditJudges {
  Judge evidence;  ///< heard first: knows what separated the ranks
  Judge habit;     ///< heard when the sequences themselves decide nothing
};

/// The cheapest way of making two sequences equal: calls to add on one side (2 each), calls to
/// change (2), pairs from different sites (a little more than 1). Only a window around the first
/// difference is looked at. Needleman and Wunsch's alignment with free ends where
/// a sequence is open.
std::vector<Edit> smallest_edit(const CallSequence& left, const CallSequence& right,
                                const EditJudges& judges);

}  // namespace lockstep
