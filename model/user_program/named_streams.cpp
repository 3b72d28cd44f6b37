#include "model/user_program/named_streams.hpp"

#include "model/core/ensure.hpp"

namespace lockstep {

StreamId stream_named(const ProgramSettings& settings, const std::string& name) {
  if (name == "comm") {
    return communication_stream;
  }
  if (name == "compute") {
    return compute_stream;
  }
  const auto found = settings.queues.find(name);
  ensure(found != settings.queues.end(), "every stream of a scenario has a queue");
  return stream(found->second);
}

StreamId stream_of(const ProgramSettings& settings, const Statement& statement,
                   StreamId otherwise) {
  return statement.stream ? stream_named(settings, statement.stream->value) : otherwise;
}

}  // namespace lockstep
