#include "rehearsal/measure/device_use.hpp"

#include <algorithm>
#include <utility>

#include "rehearsal/measure/interval_union.hpp"
#include "rehearsal/measure/lane_spans.hpp"
#include "rehearsal/measure/steady_step.hpp"
#include "rehearsal/measure/step_samples.hpp"

namespace lockstep::cli {

std::vector<DeviceUse> device_use(const OneRun& run) {
  const auto devices = static_cast<size_t>(run.preparation.options.devices_per_rank);
  if (devices <= 1 || run.result.journal == nullptr) {
    return {};
  }
  const Journal& journal = *run.result.journal;
  const std::vector<StepMark> steps = steps_of(journal, 0);
  const std::optional<SteadyStep> steady =
      steady_step(StepSequence(journal.repeated_on(0, 0), steps),
                  samples_of_steps(*run.preparation.log, steps.size()));
  if (!steady) {
    return {};
  }
  std::vector<std::vector<std::pair<Time, Time>>> spans(devices);
  for (int32_t number = 0; number < journal.lanes(0); ++number) {
    const LaneJournal& lane = journal.lane(0, number);
    LaneSpans within_step(journal, 0, number, steady->begin, steady->end);
    int64_t index = 0;
    lane.for_each([&](const Row& row) {
      const int64_t at = index++;
      const auto device = static_cast<size_t>(row.stream.device().value);
      const bool runs =
          row.row == RowKind::op &&
          (row.kind == OpKind::compute || row.kind == OpKind::copy || is_communication(row.kind));
      const Completion done = runs ? lane.completion(row.sequence) : Completion{};
      if (runs && device < devices && done.outcome == Outcome::ok) {
        within_step.for_each(at, done.start, done.finish, [&](Time from, Time until) {
          spans[device].emplace_back(from, until);
        });
      }
    });
  }
  std::vector<DeviceUse> uses;
  for (size_t device = 0; device < devices; ++device) {
    const auto& memory = run.result.memory.front();
    const auto found = memory.find(DeviceId{static_cast<uint8_t>(device)});
    uses.push_back({length_of_union(std::move(spans[device])), steady->end - steady->begin,
                    found == memory.end() ? Bytes{} : found->second.peak});
  }
  return uses;
}

double busy_share(const std::vector<DeviceUse>& devices) {
  double sum = 0;
  for (const DeviceUse& device : devices) {
    sum += device.step > Time{} ? seconds(device.busy) / seconds(device.step) : 0;
  }
  return devices.empty() ? 0 : sum / static_cast<double>(devices.size());
}

}  // namespace lockstep::cli
