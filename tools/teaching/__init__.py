"""What a teacher needs beside the chapters: assignments, grades, slides, an offline room."""
