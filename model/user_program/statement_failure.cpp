#include "model/user_program/statement_failure.hpp"

#include "model/core/failure.hpp"

namespace lockstep {

void fail_at(RankLog& log, SiteId site, const std::string& message, const std::string& remedy) {
  log.add({"evaluation", site, message, remedy});
  throw ProgramException(site, remedy.empty() ? message : message + "; " + remedy);
}

void fail_device_at(RankLog& log, SiteId site, const std::string& message,
                    const std::string& remedy) {
  log.add({"LS310", site, message, remedy});
  throw ProgramException(site, message);
}

void lack_at(RankLog& log, SiteId site, const std::string& message, const std::string& remedy) {
  log.add({"unsupported", site, message, remedy});
  throw ProgramException(site, message);
}

}  // namespace lockstep
