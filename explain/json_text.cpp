#include "explain/json_text.hpp"

namespace lockstep::cli {

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
