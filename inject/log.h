// What the recorder says on stderr: at most a few lines, each beginning with "lamina: ".
#pragma once

namespace lamina {

// A problem or a fact the user needs. Silent after kMaxLines of them, and with LAMINA_LOG=off.
[[gnu::format(printf, 1, 2)]] void log_line(const char* format, ...);

// Only with LAMINA_LOG=debug.
[[gnu::format(printf, 1, 2)]] void log_debug(const char* format, ...);

}  // namespace lamina
