#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/report/report_error.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep {

/// What a rank has put into a checkpoint, as a file with the checksums of a report
/// (report_envelope.hpp).
std::vector<uint8_t> encode_checkpoint(const SavedTraining& saved);
/// Trusts nothing: throws DamagedReport, or ReportError where it is no such file.
SavedTraining checkpoint_of(std::span<const uint8_t> file);

/// What the ranks of an attempt are started with, but for its store.
std::vector<uint8_t> encode_attempt(const Attempt& attempt);
/// Throws as checkpoint_of does.
Attempt attempt_of(std::span<const uint8_t> file);

}  // namespace lockstep
