#include "cli/render/style.hpp"

#include <unistd.h>

#include <cstdlib>

namespace lockstep::cli {

Style style_of_terminal() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  Style style;
  style.bars = isatty(STDOUT_FILENO) == 1;
  style.progress = isatty(STDERR_FILENO) == 1 && !dumb;
  style.colour = style.bars && !dumb && (no_colour == nullptr || *no_colour == '\0');
  return style;
}

}  // namespace lockstep::cli
