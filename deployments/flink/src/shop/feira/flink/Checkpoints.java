package shop.feira.flink;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The folder in which a job keeps its checkpoints: &lt;folder&gt;/&lt;id of the job&gt;/chk-&lt;number&gt;/_metadata. */
record Checkpoints(Path folder) {
    private record Complete(Path path, FileTime at) {
    }

    /**
     * The last checkpoint that is complete, of whatever run. Each start of a job has another id, and one that ended
     * before its first checkpoint leaves none; so the time says which is the last. The metadata is written at the end.
     */
    Optional<Path> last() throws IOException {
        if (!Files.isDirectory(folder)) {
            return Optional.empty();
        }
        List<Complete> all = new ArrayList<>();
        try (Stream<Path> found = Files.find(folder, 3, (path, is) -> path.endsWith("_metadata") && is.size() > 0)) {
            for (Path path : found.toList()) {
                all.add(new Complete(path.getParent(), Files.getLastModifiedTime(path)));
            }
        }
        return all.stream().max(Comparator.comparing(Complete::at)).map(Complete::path);
    }
}
