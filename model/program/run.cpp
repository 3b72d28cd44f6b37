#include "model/program/run.hpp"

namespace lockstep {

RankStack::RankStack(Port& world, const RunOptions& options, Journal* journal,
                     FingerprintBoard* board, const HostTime* host)
    : outermost_(&world) {
  const auto wrap = [this](std::unique_ptr<Port> decorator) {
    outermost_ = decorator.get();
    decorators_.push_back(std::move(decorator));
  };
  if (options.replay != nullptr) {
    wrap(std::make_unique<ReplayPort>(*outermost_, *options.replay));
  }
  const auto faults = options.faults.find(static_cast<int32_t>(world.place().rank.value));
  if (faults != options.faults.end()) {
    auto port = std::make_unique<FaultPort>(*outermost_, faults->second, host);
    faults_ = port.get();
    wrap(std::move(port));
  }
  if (options.check && board != nullptr) {
    wrap(std::make_unique<CheckingPort>(*outermost_, *board));
  }
  if (journal != nullptr) {
    wrap(std::make_unique<RecordingPort>(*outermost_, *journal));
  }
  rank_ = std::make_unique<Rank>(*outermost_);
}

void RankStack::tell_struck(RunResult& result) const {
  if (faults_ != nullptr) {
    for (const int32_t number : faults_->struck()) {
      result.struck_faults.emplace(number, rank_->id());
    }
  }
}

Place place_of(const RunOptions& options, int32_t rank) {
  const int32_t per_node = options.ranks_per_node > 0 ? options.ranks_per_node : options.world_size;
  Place place;
  place.rank = RankId{static_cast<uint32_t>(rank)};
  place.world_size = options.world_size;
  const PositionOnNode position = options.ranks_of_nodes.empty()
                                      ? PositionOnNode{rank / per_node, rank % per_node, per_node}
                                      : position_on_node(options.ranks_of_nodes, rank);
  place.node = position.node;
  place.local_rank = position.local_rank;
  place.local_world_size = position.local_world_size;
  place.devices = options.devices_per_rank;
  place.attempt = options.attempt;
  place.seed = options.seed;
  return place;
}

RankEnd end_of(std::exception_ptr failure) {
  if (!failure) {
    return {};
  }
  try {
    std::rethrow_exception(failure);
  } catch (const OutOfMemory& error) {
    return {RankEnd::Kind::raised, error.site(), error.what(), true};
  } catch (const ProgramException& error) {
    return {RankEnd::Kind::raised, error.site(), error.what(), false};
  } catch (const RankFailure& error) {
    const bool stuck = error.outcome() == Outcome::timed_out || error.outcome() == Outcome::aborted;
    return {stuck ? RankEnd::Kind::stuck : RankEnd::Kind::failed, no_site, error.what(), false};
  } catch (const RankLost& error) {
    return {RankEnd::Kind::lost, no_site, error.what(), false};
  } catch (const std::exception& error) {
    return {RankEnd::Kind::raised, no_site, error.what(), false};
  }
}

}  // namespace lockstep
