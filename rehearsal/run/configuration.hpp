#pragma once

#include <optional>
#include <string_view>

#include "properties/invariants/every_sample_once.hpp"
#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// The one loader of a stage ("train", "validation", ..). Null when the stage has several, or when
/// there are no data at all.
const LoaderSpec* loader_of(const OneRun& run, std::string_view stage);
/// What carries values from rank to rank: nccl, gloo or xla; one process on MPS has "mps".
std::string_view name_of_backend(const Preparation& preparation);
/// Whether ranks have batches, sizes of them or values of their own: no one device has the same.
bool has_own_batches(const LoaderSpec& loader);
/// Samples in the data set of a stage; nothing where batches are counted instead.
std::optional<int64_t> samples_of_stage(const OneRun& run, std::string_view stage);

/// What a rank used in a pass where the rank that runs for its class used `of_class`: the same, or
/// samples of its own.
UsedSamples samples_of_rank(const OneRun& run, size_t rank, const UsedSamples& of_class);
/// How ranks that take turns used the samples of one pass of each, counted and not listed; nothing:
/// they do not, or took several passes.
std::optional<SampleCounts> counts_of_turns(const OneRun& run, std::string_view stage,
                                            int64_t epoch, int64_t samples);
/// How often the ranks took the samples of a stage's first loader in an epoch; nothing where they
/// took none, or have batches of their own.
std::optional<SampleCounts> sample_counts(const OneRun& run, std::string_view stage, int64_t epoch);

/// Like sample_counts, for the last epoch of an evaluation.
std::optional<SampleCounts> last_sample_counts(const OneRun& run, std::string_view stage);

/// The resolved configuration of a run: devices, batch sizes, learning rate.
Results configuration_of(const OneRun& run);

}  // namespace lockstep::cli
