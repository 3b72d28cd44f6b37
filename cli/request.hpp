#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"
#include "rehearsal/launch/device_choice.hpp"
#include "rehearsal/world.hpp"

namespace lockstep::cli {

enum class Format : uint8_t { text, json, junit, csv };

/// What `sweep` alone takes.
struct SweepRequest {
  std::vector<std::string> vary;   ///< KEY=V1,V2
  std::string vary_file;           ///< a list of cases in place of a grid; empty: none
  std::string rows;                ///< the file that rows are appended to; empty: none
  std::string shard;               ///< "1/8"; empty: all
  bool resume = false;             ///< go on with `rows`
  bool merge = false;              ///< the arguments are files of rows
  std::vector<std::string> where;  ///< conditions that a row must meet to be shown
  std::string sort;                ///< "step_time:desc"; empty: by case
  std::string plot;                ///< an SVG file; empty: none
  std::string plot_x;              ///< empty: the first key
  std::string plot_y;              ///< a result
};

/// What `collective` alone takes.
struct CollectiveRequest {
  std::string cluster;  ///< a preset, a map or a scenario
  std::string sizes;    ///< "8B..4GiB", or a list; empty: as usual, or those of `against`
  std::string against;  ///< a file of nccl-tests; empty: none
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::optional<int64_t> nodes;
  int64_t gpus_per_process = 1;
  bool uncorrected = false;
};

/// What `plan` alone takes.
struct PlanRequest {
  std::optional<int64_t> samples;  ///< of an optimizer step; none: as the scenario says under ddp
  int64_t top = 10;                ///< layouts shown
};

/// What `accuracy` alone takes.
struct AccuracyRequest {
  std::string plot;  ///< an SVG file; empty: none
  std::string page;  ///< a page of documentation to write; empty: none
  std::string row;   ///< of which the scenario is printed; empty: all are predicted
  std::string
      software;  ///< replaces the profile of every row; none: data sheets; empty: the row's own
};

/// Files that `run` alone writes; empty: none.
struct RunFiles {
  std::string logs;    ///< a folder: what loggers and monitors would have recorded
  std::string report;  ///< an HTML page
  std::string plot;    ///< an SVG file: a step, and memory over time
};

/// The user's request: one command with its options.
struct Request {
  std::string command;
  std::vector<std::string> arguments;  ///< files, folders, or what `explain` explains
  std::vector<std::string> set;
  std::optional<int64_t> seed;
  Format format = Format::text;
  std::string output;   ///< empty: standard output
  int jobs = 0;         ///< 0: as many as there are cores
  bool strict = false;  ///< warnings count as errors
  bool verbose = false;
  bool progress = false;       ///< shown also where standard error is no terminal
  std::string timeline;        ///< empty: none
  std::string timeline_steps;  ///< "5000-5010": of which the timeline leaves out none; empty: none
  RunFiles files{};
  std::string strategies;  ///< of `run` and `verify`: to compare; empty: the scenario's own
  bool all_steps = false;  ///< of `verify`: none is left out, and all have values
  bool covering = false;   ///< `test`: leaves out cases whose calls others make
  std::string junit;       ///< `test`: a report beside the table; empty: none
  std::optional<double> time_limit_s;
  std::optional<Bytes> value_memory;  ///< for the values of one case; none: as usual
  World world = World::simulated;
  std::string calibration;        ///< a file, beside what the scenario says; empty: none
  int32_t ranks = 0;              ///< of `calibrate`; 0: as many as are usual
  bool quick = false;             ///< of `calibrate`
  std::string command_line{};     ///< as the shell takes it again
  int64_t clock_at_start_ns = 0;  ///< what the steady clock said when the command began
  std::string reports;            ///< of `compare`: the folder in which the ranks left theirs
  double hang_after_s = 10;  ///< of `exec`: how long a rank may wait before the run counts as hung
  double join_timeout_s = 60;  ///< of `exec`: within which all ranks must have joined
  DeviceRequest device;        ///< of `exec`
  bool skip_values = false;    ///< of `exec` and `compare`: the simulation repeats no arithmetic
  bool environment = false;    ///< of `explain`: what each rank of a scenario is started with
  SweepRequest sweep{};
  PlanRequest plan{};
  CollectiveRequest collective{};
  AccuracyRequest accuracy{};
  int64_t draw_faults = 0;  ///< of `verify`: how many, from the seed
};

}  // namespace lockstep::cli
