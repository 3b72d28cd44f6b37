#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/device/device_links.hpp"
#include "backend/device/device_troubles.hpp"
#include "backend/device/device_work.hpp"
#include "backend/device/lane_queue.hpp"
#include "backend/device/watchdog.hpp"
#include "backend/device/world.hpp"
#include "backend/rank/host_lanes.hpp"
#include "backend/rank/ticket_table.hpp"

namespace lockstep::backend {

/// The host of one rank over streams of real devices: its port, and the loop that runs its lanes,
/// launches what may start and asks the device what has finished. All on one thread; `settled` is
/// what the device has reached. The host keeps what waits for a promise, for a link, or for its
/// turn on a link; everything else is in its stream at once.
class DeviceHost final : public Port {
 public:
  using Clock = std::chrono::steady_clock;

  /// `journal` and `fingerprints` may be null; all outlive the host.
  DeviceHost(const DeviceSeat& seat, const RunOptions& options, std::chrono::milliseconds deadline,
             Journal* journal, FingerprintBoard* fingerprints);
  ~DeviceHost() override;

  /// Runs the program to its end, or until nothing has happened for the deadline.
  void run(const ProgramOfRank& program_of_rank);
  /// Waits for what is still in flight; what does not move for `limit` ends as aborted.
  void drain(std::chrono::milliseconds limit);

  /// A fault took the rank away.
  bool was_lost() const { return lanes_.end().kind == RankEnd::Kind::lost; }
  /// Adds what this rank knows to the result.
  void tell(RunResult& result);
  Time now() const;

  const Place& place() const override { return place_; }
  LaneId lane() const override { return lanes_.current(); }
  BufferId allocate(const BufferSpec& spec) override;
  void release(BufferId buffer, SiteId site) override;
  void write(const Slice& to, const Values& values) override;
  Values read(const Slice& from) override;
  Ticket submit(std::span<const Op> ops) override;
  void wait_begins(std::span<const Ticket> tickets, Until until) override;
  bool settled(Ticket ticket) const override;
  void resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) override;
  Status status(Ticket ticket) const override;
  Lane& start_lane(Program program) override;
  Ticket promise() override;
  void fulfil(Ticket promise) override;
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override;

 private:
  enum class Ended : uint8_t { done, nothing_moved };

  // The loop.
  Ended pump(std::chrono::milliseconds limit, const std::function<bool()>& done);
  bool computes() const;
  void abort(Outcome outcome, bool is_hang);

  // Submission.
  Ticket host_work(const Op& op);
  void wait_for_room();
  void add(DeviceWork& work, const Op& op);
  void add_communication(DeviceWork& work, const Op& op);

  // Launching.
  bool advance();
  bool settle_reached(DeviceStream& stream);
  bool launch_ready(DeviceStream& stream);
  bool dependencies_allow(const DeviceStream& stream, DeviceWork& work);
  void begin(DeviceWork& work);
  bool is_taken(DeviceWork& work);
  bool make_group(DeviceWork& work);
  void launch_part(DeviceWork& work, DeviceWork::Part& part);
  StreamNumber stream_of(const DeviceWork& work, const DeviceWork::Part& part) const;
  bool waits_for_device(const DeviceWork& work) const;
  void settle(const DeviceWork& work, const Status& status);
  void let_go(std::span<const Slice> operands);
  bool carries_values(const BufferSpec& spec) const;
  void fail(DeviceWork& work, const DeviceError& error);

  const RunOptions& options_;
  const std::chrono::milliseconds deadline_;
  Device& device_;
  Board& board_;
  Place place_;
  RankStack stack_;
  HostLanes lanes_;
  Watchdog watchdog_;
  Clock::time_point start_;
  Clock::time_point moved_;  ///< when something happened last

  TicketTable tickets_;
  BufferTable buffers_;        ///< accounts for them; the device holds the values
  JournalFollower* follower_;  ///< null: none
  DeviceTroubles troubles_;
  DeviceLinks links_;
  std::map<StreamId, DeviceStream> streams_;
  std::unordered_map<uint64_t, DeviceWork*> works_;  ///< by ticket, in flight; looked up only
  LaneQueue queue_;
  int64_t in_flight_ = 0;
  int64_t operations_ = 0;
  bool aborted_ = false;
  bool hung_ = false;
  std::vector<WaitingLane> waiting_;  ///< where it hung
};

}  // namespace lockstep::backend
